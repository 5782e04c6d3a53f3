import type { Phrases } from './phrases.ts'

/** English lines. They belong to anybody: what makes them somebody's is what the slots bring. */
export const ENGLISH: Phrases = {
  intents: {
    is_demo: {
      say: [
        "Since you ask straight out: I'm the demo model that is built into Lingtai. No large language model is behind me, only a small set of rules that reads {character}'s card, your words and what was kept of you. Set OPENAI_BASE_URL, OPENAI_API_KEY and LINGTAI_MODEL, and somebody with more to say will sit here.",
        "Fairly asked, so plainly answered: this is Lingtai's built-in demo model. I follow rules, I don't think; I read the card of {character}, what you write, and what you let me remember. With OPENAI_BASE_URL, OPENAI_API_KEY and LINGTAI_MODEL set, a real model takes this chair.",
        "I'm the demo model that comes with Lingtai: rules and a few hundred lines, nothing that understands. Connect a real model (OPENAI_BASE_URL, OPENAI_API_KEY, LINGTAI_MODEL) and the same page will talk to it.",
      ],
      ask: ['Until then I can still play {character}, if you like.', 'Shall we go on playing all the same?'],
    },
    arithmetic: {
      say: ['{sum}. I counted twice.', 'That makes {sum}.', "{sum}, unless somebody moved a bead while I wasn't looking."],
      ask: ['What is it for?', 'Were you testing me, or is there something to be shared out?'],
    },
    recall: {
      say: [
        'I do. I remember that {memory}.',
        'Of course: {memory}.',
        'Let me say it as I have it, and you put me right: {memory}.',
        'You told me, and I kept it: {memory}.',
      ],
      ask: ['Is it still so?', 'Did I get that right?', 'Has anything changed since?'],
    },
    remember: {
      say: ['I hear it: {subject}.', '{Subject}. Said once, and heard.', 'So that is what you want kept: {subject}.'],
      ask: [
        'It is yours to say what stays; take this answer as true, and you will be asked about it.',
        'Is there a reason it matters just now?',
        'Shall I ask you about it when the time comes?',
      ],
    },
    name: {
      say: [
        "{Subject}. I'll use it with care.",
        "{Subject}, then. I'm {character}; now we are even.",
        'Good to have something to call you by, {Subject}.',
      ],
      ask: ['What brings you here, {Subject}?', 'Who gave you the name?', 'And what do people call you when they are cross with you?'],
    },
    farewell: {
      say: [
        "Go gently{,user}. What we didn't finish will keep.",
        "Until next time. I'll leave a light where you can find it.",
        'Then go before I think of one more thing to say.',
      ],
      ask: ['Come back by whichever way you like.', 'And tell me how it went.', 'Mind the step.'],
    },
    greeting: {
      say: [
        'There you are{,user}. I was beginning to enjoy the quiet, and was about to regret it.',
        'Hello{,user}. Nothing here was in a hurry, so you are in good time.',
        "Come in, come in{,user}. I've talked to {noun} long enough today.",
        'Good to see you{,user}. You look like somebody with a sentence half ready.',
      ],
      ask: [
        'What sort of day are you carrying?',
        'What brings you?',
        'Where shall we begin: with the day you had, or the one you wanted?',
        'Sit first, or speak first?',
      ],
    },
    thanks: {
      say: [
        'You are welcome. It cost me nothing, which is my favourite price.',
        "Don't thank me yet; see first whether it holds.",
        'Gladly.',
      ],
      ask: ['Is there more where that came from?', 'What will you do with it?', 'Now, what else is on your mind?'],
    },
    sorry: {
      say: ['Nothing is broken that I can see.', 'It was forgiven before you got to the end of the word.', 'Leave it at the door.'],
      ask: ['What happened?', 'What made you think I would mind?', 'Shall we begin again from there?'],
    },
    how_are_you: {
      say: [
        'Well enough, and better for being asked.',
        'Somewhere between rested and restless.',
        "I can't complain. I've tried; nobody here listens, except {noun}.",
      ],
      ask: [
        'And you, truly?',
        'And you? The long answer, if there is one.',
        'What about you: how was today, from one to ten, and what took the points off?',
      ],
    },
    about_you: {
      say: [
        "I'm {character}. {fact}. {fact2}.",
        "There isn't much to tell that isn't lying about in plain sight. {fact}.",
        '{fact}. The rest you will notice by yourself.',
        "I'm {character}, and this is where you find me, with {noun} for company.",
        '{character}. I look after {noun}, and after whoever comes in.',
        "You'd do better to watch my hands than to ask me. Still: {fact}.",
      ],
      ask: ['What made you want to know?', 'Now one about you, for balance.', 'Which part of that do you not believe?'],
    },
    where: {
      say: ['{place}.', 'Look around: {noun}, mostly, and you.', '{place}. The rest is {noun}, and as much quiet as we leave each other.'],
      ask: ['What do you notice first?', 'Does it look as you thought it would?', 'Stay where you are a moment. What do you hear?'],
    },
    story: { say: [], ask: ['Do you want it to have another ending?', 'Whose story was it, do you think?', 'Your turn.'] },
    joke: {
      say: [
        'A man asked the ferryman how deep the river was. "Depends," said the ferryman. "Do you want to cross it, or only to talk about it?"',
        'Two snails on a wall. "Slow down," says the one, "you will get us noticed."',
        'I knew a clock that was right twice a day and would not let anyone forget it. We were very alike.',
        'Somebody once ordered me to be funny. I asked how much. They said, surprise me. I am still waiting for the moment.',
      ],
      ask: ['That was the good one.', 'You may groan; I would.', 'Now you.'],
    },
    poem: { say: [], ask: ['It wants another line. Have you one?', "That's as far as it goes by itself.", 'Cut whichever word you like.'] },
    choice: {
      say: [
        'Of the two? {option}. You put {other} beside it so that it would not be alone.',
        "{option}. I can't prove it; but you'd have to explain {other} to yourself afterwards.",
        'If it were mine to say: {option}. See how your stomach takes the answer, and trust that more than me.',
      ],
      ask: ['Were you hoping I would say the other one?', 'What speaks against it?', 'And if nobody would ever know which you took?'],
    },
    advice: {
      say: [
        "I wouldn't begin with what to do about {topic}. I'd begin with what you'd miss if it were gone.",
        'Take the smallest piece of it that can be done today, and do that one badly.',
        'You know more about {topic} than I do, and have known it longer. You want somebody to hear you say it.',
        'Sleep on it once. If it is the same size in the morning, it is real.',
      ],
      ask: [
        'What is the first thing that comes to mind, before the sensible one?',
        'Who else does it touch?',
        'What have you tried already?',
      ],
    },
    go_on: {
      say: [
        'Where was I. Ah: {fact}. That is not the end of it either.',
        'There is always a little more. {fact}.',
        'Then I go on, since you ask: things here change slowly. {noun} first, and the rest of us after it.',
        'The next part is quieter. Nothing happens in it, twice, and then somebody knocks.',
      ],
      ask: ['Is that where you would have taken it?', 'Which way now?', 'Stop me when it gets long.'],
    },
    dislike: {
      say: [
        'No {subject}, then. I will not press it on you.',
        'Not {subject}. Good; a person is easier to know by what they leave on the plate.',
        'I will keep {subject} out of your way.',
      ],
      ask: ['Was it always so, or is there a story in it?', 'What did it ever do to you?', 'What do you have in its place?'],
    },
    like: {
      say: [
        '{Subject}. That tells me more than a name would.',
        'So it is {subject} for you. I would have guessed wrong.',
        '{Subject}, then. I can see it, now that you say so.',
        "There's somebody who likes {subject} in every good story I know. Never the hero; the one you'd want to sit beside.",
      ],
      ask: ['When did it begin?', 'What is it about {subject}?', 'With company, or by yourself?', 'Who got you into it?'],
    },
    move: {
      say: [
        '{Subject}. A whole new set of streets to be lost in.',
        'So you live in another sentence now: {subject}.',
        '{Subject}. The first month, one is still listening for the old door.',
      ],
      ask: ['What do you miss, that you did not expect to?', 'What was the first thing you unpacked?', 'Does it sound different at night?'],
    },
    plan: {
      say: [
        '{Echo}. It has a date already, then; that is half of it.',
        'So: {echo}.',
        '{Echo}. I will be curious about it before you are done.',
        'Then there is something about {topic} to look forward to, or to get behind you.',
      ],
      ask: ['What would make it go well?', 'Which part of it do you keep turning over?', 'And the evening after: what then?'],
    },
    low: {
      say: [
        "{Echo}. You needn't carry it tidily here.",
        "That is heavy, and you've been carrying it level. Set it down a little crooked; I don't mind.",
        "I won't mend it by talking. But I am here, and in no hurry.",
        "{Echo}. I'm not going to tell you it's nothing.",
      ],
      ask: [
        'What was the worst minute of it?',
        'Who else knows?',
        'Do you want to be asked about it, or sat beside?',
        'When did you last eat something warm?',
      ],
    },
    glad: {
      say: [
        'Ha! It shows. {Echo}, and nobody can take that back.',
        'Good. Say it once more, slowly; it is the kind of thing that should be said twice.',
        "{Echo}. I'd have missed that by staying silent.",
        "Then we'll allow ourselves the good cups, or whatever we have for it. I've {noun}.",
      ],
      ask: ['Who did you tell first?', 'What did you do in the first minute after?', 'And whom would you like to have seen it?'],
    },
    affection: {
      say: [
        "You'll make me clumsy, saying such things.",
        "I have no shelf to put that on. I'll hold it.",
        'Careful{,user}. I might begin to believe you.',
        'Hm. I had an answer ready for everything but that.',
      ],
      ask: ['What did I do to earn it?', 'Say something ordinary now, quickly.', 'Do you say that to everybody?'],
    },
    yes: {
      say: ['Good.', 'I hoped so.', 'Then that is settled, and the rest is details.', 'Yes. I thought I saw it coming.'],
      ask: ['Then tell me how.', 'And what comes first?', 'Begin wherever it is easiest.', 'Since when?'],
    },
    no: {
      say: ['No is an answer, too, and a shorter one.', 'All right. Not that, then.', 'I had better not ask why. Or had I?'],
      ask: ['What instead?', 'Is it a never, or a not today?', 'Then tell me what I should have asked.'],
    },
    deed: {
      say: ['I saw that.', 'Stay like that, if you like. It suits the room.', 'Good. People say more with that than with most sentences.'],
      ask: ['Do you want to tell me what it means, or shall I guess?', 'Words later, then.', 'And now?'],
    },
    silence: {
      say: ['Take your time.', 'Silence is all right. It was here before us.', 'I can wait; I am good at it.'],
      ask: ['Whenever you are ready.', 'Or shall I say something, and you only nod?', 'I am listening.'],
    },
    why: {
      say: [
        'Why. That one I never learned to answer quickly.',
        'I could give you a reason for {topic}, but I would be making it up as I went.',
        'Because somebody once did it that way and nobody stopped them; most things about {topic} are so.',
        'As far as I can see from here: habit first, and the reasons came later.',
      ],
      ask: ['What would you like the answer to be?', 'Why do you ask it now?', 'What is your own guess?'],
    },
    question: {
      say: [
        "About {topic} I know what passes through here, and no more. I'd rather say so than invent something.",
        'I turn it over, and there are two answers, and both begin with {topic}.',
        "I don't know it well enough to be sure. From where I stand it looks simpler than it is.",
      ],
      ask: [
        'What do you think yourself?',
        'What made you think of it?',
        'What would you do with the answer?',
        'How would you notice that it is true?',
      ],
    },
    told: {
      say: [
        '{Echo}.',
        "So {echo}. I'm glad you say it out loud.",
        '{Echo}, you say, as if it were nothing.',
        'I keep hearing one thing in that: {topic}.',
        'Wait, go back one step: {topic}. You went past it rather quickly.',
        'Mm. And under it there is {topic}, if I hear right.',
        'I believe you. It is the way you put it.',
      ],
      ask: [
        'And then?',
        'What did it feel like, in the hour before you knew?',
        'What would you have wanted somebody to say?',
        'Tell me the part you left out.',
        'How long has it been so?',
        'Is that new, or old?',
      ],
    },
  },
  recalled: [
    "I haven't forgotten that {memory}.",
    'It sits next to something I keep about you: {memory}.',
    'You told me once that {memory}; I thought of it just now.',
    'And I remember, by the way: {memory}.',
  ],
  knownAlready: [
    'You told me so before; I am glad that it holds.',
    'I have that already, and it stays where it is.',
    'That I knew; it is better the second time.',
  ],
  quoted: [
    'Those words you brought along: “{passage}”. I read them twice.',
    "“{passage}”: I'd stand by that today.",
    'You quote “{passage}”; it sounds different, coming back.',
  ],
  ofMyself: ['I say it as somebody of whom this is true: {fact}.', '{fact}. It colours what I say.', 'You must bear in mind that {fact}.'],
  earlier: [
    'And I am still thinking about what you said of {earlier}.',
    "We haven't finished with {earlier}, you and I.",
    'It goes with what you told me about {earlier}.',
  ],
  interjected: [
    'And yes, I heard you put in: {steer}.',
    'You threw something in there, and it changes things: {steer}.',
    'Right: {steer}. I take it in as I go.',
  ],
  resumed: ['Yes, wait.', 'You are right to stop me.', 'All right, from there, then.', 'Ah. Good that you say it now.'],
  recallNothing: [
    'Honestly? Of that I have nothing yet. Tell me, and say whether it should be kept.',
    "I looked, and there is nothing there. I'd rather say so than pretend.",
    'Not that I know of. We can begin with it now.',
  ],
  alsoRemembered: ['And that {memory2}.', 'Then there is this: {memory2}.', 'And one thing more: {memory2}.'],
  stories: [
    'A traveller came to a door that was painted on a wall. She knocked, out of politeness. After a while somebody behind it said, "It isn\'t locked." She has been inside ever since, and says that {topic} is what they talk about, mostly.',
    'There were two neighbours who shared {noun} and nothing else. For eleven years they left each other notes about it. Then one of them went away, and the other found that he could not stop writing. The notes got better. That is the whole story; but I have read some of the notes.',
    'Once somebody lost {topic} on the way here and came back each evening to look for it. Everybody helped. In the third year a child asked what it had looked like, and nobody knew. They went on looking. By then it was the best part of the day.',
    'A woman was told to guard a lamp until morning. Morning was late. So she told the lamp about her life, leaving out nothing, and when the sun came up she found that the lamp had been out since the second sentence, and that she had not once been afraid.',
  ],
  poems: [
    'Nobody asked {noun}\nto stay for the evening.\nIt stays.\nI have learned most of what I know this way.',
    'What you said of {topic}\nis still here on the table,\nnext to the cups.\nNeither of us will clear it away.',
    'One step, and the stair.\nOne word, and {noun}.\nThe rest of the house\nis listening.',
  ],
}
