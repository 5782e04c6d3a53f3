/** How many Han characters come at once, in turn: written text does not come in even steps. */
const HAN_STEPS = [2, 1, 3, 2, 2, 1]

/** Cuts an answer into what a person sees arriving: a word with the space before it, one to three Han characters. Joined, they are the text. */
export const piecesOf = (text: string): string[] => {
  const pieces: string[] = []
  let step = 0
  for (const [run] of text.matchAll(/\p{Script=Han}+|\s*[^\s\p{Script=Han}]+|\s+/gu)) {
    if (!/^\p{Script=Han}/u.test(run)) {
      pieces.push(run)
      continue
    }
    const characters = [...run]
    while (characters.length > 0) pieces.push(characters.splice(0, HAN_STEPS[step++ % HAN_STEPS.length]).join(''))
  }
  return pieces
}
