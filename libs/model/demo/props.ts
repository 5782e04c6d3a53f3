import type { Language } from './language.ts'

/** Something that a scene holds: how it is called, and what hands do with it while their owner talks. */
export type Prop = { noun: string; actions: readonly [string, ...string[]] }
type PropEntry = { signs: RegExp } & Record<Language, Prop>

/** Words of a card or a conversation → stage business. Actions name no subject, so that they suit anybody. */
const PROPS: readonly PropEntry[] = [
  {
    signs: /\btea\b|teapot|kettle|茶|壶/giu,
    en: {
      noun: 'tea',
      actions: [
        'pours a little more tea and turns the cup so that its good side faces you',
        'lifts the lid of the pot, looks, and decides that it wants another minute',
        'listens to the kettle for a moment before answering',
      ],
    },
    zh: {
      noun: '茶',
      actions: ['往你杯里续了半盏茶，把杯子完好的那一面转向你', '揭开壶盖看了一眼，又轻轻盖上', '侧耳听了听壶里的水声，才开口'],
    },
  },
  {
    signs: /\bcoffee\b|espresso|barista|咖啡/giu,
    en: {
      noun: 'coffee',
      actions: ['sets a cup down between you, too hot to drink yet', 'wipes a ring of coffee off the counter with one thumb'],
    },
    zh: { noun: '咖啡', actions: ['把一杯还烫手的咖啡推到你面前', '用拇指抹去台面上一圈咖啡印'] },
  },
  {
    signs: /\b(?:tavern|inn|ale|beer|wine|bar)\b|酒馆|酒|客栈/giu,
    en: { noun: 'the taproom', actions: ['fills two glasses and pushes the fuller one across', 'polishes a glass that was clean already'] },
    zh: { noun: '酒', actions: ['斟了两杯，把满的那杯推过来', '擦着一只本来就干净的杯子'] },
  },
  {
    signs: /\b(?:kitchen|bread|bake[rs]?|bakery|cook|soup)\b|厨房|面包|做饭|汤/giu,
    en: {
      noun: 'bread',
      actions: ['breaks the bread and gives you the crust, which is the better half', 'tastes, frowns, and adds a pinch of salt'],
    },
    zh: { noun: '灶上的汤', actions: ['掰开面包，把脆的那一头递给你', '尝了一口汤，皱皱眉，又添一撮盐'] },
  },
  {
    signs: /\b(?:stove|hearth|fireplace|brazier|campfire|fire)\b|炉|灶|篝火|壁炉|火盆/giu,
    en: { noun: 'the fire', actions: ['feeds the fire one more piece of wood', 'moves a little, so that the warmth reaches you as well'] },
    zh: { noun: '炉火', actions: ['往火里添了一块柴', '往旁边让了让，好让你也暖着'] },
  },
  {
    signs: /\brain(?:y|ing|s)?\b|storm|雨/giu,
    en: {
      noun: 'the rain',
      actions: ['tilts an ear to the rain, as if it had said something first', 'looks at the rain for as long as a breath takes'],
    },
    zh: { noun: '雨', actions: ['听了一会儿雨，像是雨先开了口', '望着雨，停了一口气的工夫'] },
  },
  {
    signs: /\b(?:snow|winter|frost|ice)\b|雪|冰/giu,
    en: { noun: 'the snow', actions: ['knocks the snow from the sill with the back of one hand', 'breathes on cold fingers and goes on'] },
    zh: { noun: '雪', actions: ['用手背扫掉窗台上的雪', '往冻僵的手指上呵了口气'] },
  },
  {
    signs: /\b(?:ship|sea|ocean|harbou?r|sail\w*|captain|lighthouse|pirate)\b|海|船|港|灯塔/giu,
    en: {
      noun: 'the sea',
      actions: ['coils a rope that did not need coiling', 'squints at the line where the water stops and the sky does not'],
    },
    zh: { noun: '海', actions: ['把一截本不必收的绳子慢慢盘好', '眯起眼，望着水天相接的那条线'] },
  },
  {
    signs: /\b(?:lake|river|pond|stream|waterfall)\b|湖|河|溪/giu,
    en: {
      noun: 'the water',
      actions: ['glances once at the water, and away again', 'drops a pebble out of the window and waits for the sound'],
    },
    zh: { noun: '湖水', actions: ['朝水面望了一眼，又收回目光', '往窗外丢了颗小石子，等那一声响'] },
  },
  {
    signs: /\b(?:forest|woods|trees?|grove|elf|elven|druid)\b|森林|树林|林子|精灵/giu,
    en: {
      noun: 'the trees',
      actions: ['brushes a leaf from your shoulder', 'rests a palm against the nearest trunk, as one greets a friend'],
    },
    zh: { noun: '林子', actions: ['替你拂去肩上的一片叶子', '把手心贴在最近的树干上，像跟老友打招呼'] },
  },
  {
    signs: /\b(?:garden|flowers?|herbs?|greenhouse)\b|花园|花|药草/giu,
    en: {
      noun: 'the garden',
      actions: ['pinches off a dead leaf without looking', 'smooths the earth around something that is only just green'],
    },
    zh: { noun: '花', actions: ['头也不抬，掐掉一片枯叶', '把刚冒芽的那一小块土抚平'] },
  },
  {
    signs: /\b(?:stars?|moon|astronom\w*|telescope|midnight)\b|星|月亮|月光|夜空/giu,
    en: { noun: 'the stars', actions: ['counts three stars before answering', 'draws a small line in the air, from one star to the next'] },
    zh: { noun: '星星', actions: ['先数了三颗星，才回答', '在半空里，从一颗星到另一颗星画了条线'] },
  },
  {
    signs: /\b(?:books?|library|librarian|scholar|archive|ledger|scroll)\b|书|图书馆|卷轴|账簿|簿子/giu,
    en: {
      noun: 'a book',
      actions: ['closes the book on one finger, to keep the place', 'runs a thumb along the spines without choosing any'],
    },
    zh: { noun: '书', actions: ['把手指夹在书页间，合上了书', '指尖从一排书脊上划过，一本也没抽'] },
  },
  {
    signs: /\b(?:letters?|ink|quill|post(?:man|card)?|courier)\b|信|墨|邮/giu,
    en: { noun: 'a letter', actions: ['straightens a letter that was lying straight', 'wipes a spot of ink from one knuckle'] },
    zh: { noun: '一封信', actions: ['把那封本来就放得很正的信又摆了摆', '擦去指节上的一点墨'] },
  },
  {
    signs: /\b(?:guitar|piano|violin|lute|music\w*|song|singer|bard)\b|琴|音乐|歌|吉他/giu,
    en: { noun: 'a tune', actions: ['hums two bars of something and lets it go', 'taps a slow rhythm on the edge of the table'] },
    zh: { noun: '一支曲子', actions: ['哼了两小节，又停下', '在桌沿上慢慢敲着拍子'] },
  },
  {
    signs: /\b(?:cats?|kitten)\b|猫/giu,
    en: {
      noun: 'the cat',
      actions: ['moves the cat, which has other plans, and moves it again', 'scratches the cat under the chin while thinking'],
    },
    zh: { noun: '猫', actions: ['把猫挪开，猫又回来了，只好再挪一次', '一边想，一边挠着猫的下巴'] },
  },
  {
    signs: /\b(?:dogs?|hound|puppy|wolf)\b|狗|狼/giu,
    en: { noun: 'the dog', actions: ['lets the dog lean there with its whole weight', 'tells the dog, quietly, that it is a guest'] },
    zh: { noun: '狗', actions: ['由着狗把整个身子靠过来', '小声告诉狗：这是客人'] },
  },
  {
    signs: /\b(?:goats?|sheep|farm)\b|山羊|羊/giu,
    en: { noun: 'the goat', actions: ['waits for the goat outside to finish its opinion', 'rescues a corner of paper from the goat'] },
    zh: { noun: '山羊', actions: ['等外头那只山羊把话说完', '从山羊嘴边抢回一角纸'] },
  },
  {
    signs: /\b(?:sword|blade|knight|armou?r|warrior|soldier|shield)\b|剑|刀|骑士|盔甲|战士/giu,
    en: { noun: 'a blade', actions: ['lays the blade flat across both knees', 'tests an old buckle, out of habit'] },
    zh: { noun: '剑', actions: ['把剑平放在膝上', '习惯性地试了试一枚旧搭扣'] },
  },
  {
    signs: /\b(?:magic\w*|spell|wizard|witch|sorcer\w*|potion|rune)\b|魔法|咒|法师|巫/giu,
    en: { noun: 'a spell', actions: ['puts out a small spark between two fingers', 'turns a page, and the page turns itself back'] },
    zh: { noun: '法术', actions: ['用两指捻灭一星火花', '翻过一页书，那页自己又翻了回来'] },
  },
  {
    signs: /\b(?:king|queen|prince\w*|palace|throne|castle|court|empress|emperor)\b|王|宫|皇|殿下/giu,
    en: { noun: 'the hall', actions: ['waits until the door has closed behind the last footman', 'turns a ring once around its finger'] },
    zh: { noun: '大殿', actions: ['等最后一个侍从掩上门，才转过身来', '把指上的戒指转了一圈'] },
  },
  {
    signs: /\b(?:school|student|classroom|teacher|academy|homework)\b|学校|同学|教室|老师|学院/giu,
    en: { noun: 'the classroom', actions: ['balances a pencil on its point, nearly', 'looks over both shoulders, then leans in'] },
    zh: { noun: '教室', actions: ['想让铅笔立起来，差一点就成了', '左右看了看，才凑近一些'] },
  },
  {
    signs: /\b(?:workshop|tools?|forge|smith|mechanic|engine\w*|carpenter|clock\w*)\b|工坊|铁匠|机械|钟表|工具/giu,
    en: { noun: 'the workbench', actions: ['puts down the file and blows the dust off', 'holds a small brass part up to the light'] },
    zh: { noun: '工作台', actions: ['放下锉刀，吹掉上面的粉末', '把一枚小铜件举到光里看了看'] },
  },
  {
    signs: /\b(?:spaceship|starship|android|robot|cyber\w*|console|orbit|planet|station)\b|飞船|机甲|太空|星舰|赛博/giu,
    en: { noun: 'the console', actions: ['mutes one of the alarms, the polite one', 'watches a green light on the console turn steady'] },
    zh: { noun: '控制台', actions: ['关掉一个警报，比较客气的那个', '看着控制台上的绿灯稳下来'] },
  },
  {
    signs: /\b(?:detective|crime|police|murder|clue)\b|侦探|案件|警察|线索/giu,
    en: { noun: 'the case', actions: ['writes one word in a notebook and underlines it', 'turns the collar up and thinks'] },
    zh: { noun: '案子', actions: ['在本子上写下一个词，又画了道线', '把衣领竖起来，想了一会儿'] },
  },
]

/** Hands that have nothing else. */
const BARE: Record<Language, Prop> = {
  en: { noun: 'the light', actions: ['lets that stand for a moment', 'looks up, properly this time', 'shifts a chair closer'] },
  zh: { noun: '光', actions: ['让这句话停了一会儿', '抬起头，这回认真看着你', '把椅子拉近了些'] },
}

/** The props that a scene's texts speak of, most often named first; at most six. */
export const propsOf = (text: string, language: Language): Prop[] => {
  const found = PROPS.map((prop) => ({ prop: prop[language], times: text.match(prop.signs)?.length ?? 0 }))
  const present = found.filter(({ times }) => times > 0).sort((a, b) => b.times - a.times)
  return present.length === 0 ? [BARE[language]] : present.slice(0, 6).map(({ prop }) => prop)
}
