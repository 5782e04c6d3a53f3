/** What one seed does: which runs are going on, how the world outside behaves, and where which server dies. */
import { drawFrom } from './draw.ts'
import type { Draw } from './draw.ts'

export type Kind = 'ask' | 'tool' | 'approval' | 'canonize' | 'extraction'
export const kinds: readonly Kind[] = ['ask', 'tool', 'approval', 'canonize', 'extraction']

/**
 * Tools of the world outside: `look` reads; the others last. `keyed` honours keys and can be asked about them, `shy` as well but not at the
 * first asking, `plain` has neither.
 */
export type ToolName = 'look' | 'keyed' | 'shy' | 'plain'

/** How the world outside answers a call that has arrived. Before `cut_before` and `refuse` nothing happens; after the others it has. */
export type Behaviour = 'now' | 'late' | 'cut_before' | 'cut_after' | 'error_after' | 'refuse'

/** `text` names the call in the world outside. `pauseMs`: before a late answer. */
export type CallPlan = {
  tool: ToolName
  text: string
  behaviour: Behaviour
  pauseMs: number
  /** The owner's answer where they are asked. */
  decision: 'approve' | 'refuse' | 'leave'
  /** Whether the owner finds out what became of it, where nobody knows. */
  settles: boolean
}

/** What the model says and calls in one turn; `pauseMs` before each piece. */
export type TurnPlan = { pieces: { text: string; pauseMs: number }[]; calls: CallPlan[] }

/** `id` marks everything that belongs to this ask. `via`: the replica that is asked. */
export type AskPlan = { id: string; character: number; via: number; startAfterMs: number; turns: TurnPlan[]; canonize: boolean }

/** Things that happen in a round, by the part of it that they belong to. */
const momentsOf = {
  ask: ['accepted', 'asked', 'piece', 'heard', 'finished'],
  tool: ['hit', 'hit_answered', 'looked_up', 'observed'],
  approval: ['requested', 'deciding', 'decided', 'resumed', 'allowed_hit'],
  canonize: ['canonizing', 'canonized'],
  extraction: ['extracting', 'extracted'],
} as const
export type MomentName = (typeof momentsOf)[Kind][number]

/**
 * The kill: at the `count`-th time that `name` happens, and then after some milliseconds, or when the victim sends its so-manieth piece to
 * PostgreSQL: right before that piece, or right after it.
 */
export type Kill = {
  kind: Kind
  name: MomentName
  count: number
  after: { ms: number } | { piece: number; edge: 'before' | 'after' }
  /** The replica where it happened, or the other one. */
  victim: 'host' | 'other'
}

export type Plan = { seed: number; characters: number; asks: AskPlan[]; kill: Kill }

export function planRound(seed: number): Plan {
  const draw = drawFrom(seed)
  const kind = draw.pick(kinds)
  const name = draw.pick<MomentName>(momentsOf[kind])
  const characters = draw.int(2, 3)
  const asks = Array.from({ length: draw.int(3, 5) }, (_, index) => {
    const ask = { id: `r${seed}a${index}`, character: draw.int(0, characters - 1), via: draw.int(0, 1), startAfterMs: draw.int(0, 60) }
    // The first one is of the kind that the kill is about.
    return { ...ask, ...(index === 0 ? dueFor(draw, ask.id, kind, name) : anyKind(draw, ask.id)) }
  })
  return { seed, characters, asks, kill: planKill(draw, { kind, name, asks }) }
}

type Shape = Pick<AskPlan, 'turns' | 'canonize'>

function dueFor(draw: Draw, id: string, kind: Kind, name: MomentName): Shape {
  if (name === 'looked_up') return sending(draw, id, { tools: ['keyed', 'shy'], decision: 'approve' })
  if (kind === 'tool') return draw.chance(0.4) ? reading(draw, id) : sending(draw, id, { decision: 'approve' })
  if (kind === 'approval') return sending(draw, id, { decision: 'approve' })
  return { turns: [{ pieces: pieces(draw, id), calls: [] }], canonize: kind !== 'ask' }
}

function anyKind(draw: Draw, id: string): Shape {
  switch (draw.weighted({ plain: 3, reading: 2, sending: 5, canon: 3 })) {
    case 'plain':
      return { turns: [{ pieces: pieces(draw, id), calls: [] }], canonize: false }
    case 'reading':
      return reading(draw, id)
    case 'sending':
      return sending(draw, id, {})
    case 'canon':
      return { turns: [{ pieces: pieces(draw, id), calls: [] }], canonize: true }
  }
}

function pieces(draw: Draw, id: string, least = 1): TurnPlan['pieces'] {
  return Array.from({ length: draw.int(least, 6) }, (_, index) => ({
    text: `${id} says ${index}. `,
    pauseMs: draw.weighted({ none: 2, short: 3, long: 2 }) === 'none' ? 0 : draw.int(5, 90),
  }))
}

function reading(draw: Draw, id: string): Shape {
  const turns = Array.from({ length: draw.int(1, 2) }, (_, turn): TurnPlan => {
    const calls = Array.from({ length: draw.int(1, 2) }, (_, index) => ({
      tool: 'look' as const,
      text: `${id}t${turn}c${index}`,
      behaviour: draw.pick(['now', 'late'] as const),
      pauseMs: draw.int(10, 300),
      decision: 'approve' as const,
      settles: true,
    }))
    return { pieces: pieces(draw, id, 0), calls }
  })
  return { turns: [...turns, { pieces: pieces(draw, id), calls: [] }], canonize: draw.chance(0.2) }
}

/** After the first answer from outside nothing more may be sent, so all is sent in one turn (K1). */
function sending(draw: Draw, id: string, wanted: { tools?: ToolName[]; decision?: CallPlan['decision'] }): Shape {
  const calls = Array.from({ length: draw.int(1, 3) }, (_, index): CallPlan => {
    const behaviour = draw.weighted({ now: 9, late: 6, cut_before: 1, cut_after: 2, error_after: 1, refuse: 2 })
    const decision = draw.weighted({ approve: 8, refuse: 1, leave: 1 })
    return {
      tool: draw.pick(wanted.tools ?? (['keyed', 'plain', 'plain', 'shy'] as const)),
      text: `${id}c${index}`,
      behaviour,
      pauseMs: draw.int(10, 300),
      decision: index === 0 && wanted.decision ? wanted.decision : decision,
      settles: draw.chance(0.7),
    }
  })
  return {
    turns: [
      { pieces: pieces(draw, id, 0), calls },
      { pieces: pieces(draw, id), calls: [] },
    ],
    canonize: draw.chance(0.2),
  }
}

function planKill(draw: Draw, { kind, name, asks }: { kind: Kind; name: MomentName; asks: readonly AskPlan[] }): Kill {
  return {
    kind,
    name,
    count: draw.int(1, timesOf(name, asks)),
    after: draw.chance(0.5)
      ? { ms: draw.chance(0.4) ? 0 : draw.int(0, 40) }
      : { piece: draw.int(1, 16), edge: draw.pick(['before', 'after'] as const) },
    victim: draw.chance(0.8) ? 'host' : 'other',
  }
}

/** How often it happens where nothing goes wrong, at least once and not counted to the last. */
function timesOf(name: MomentName, asks: readonly AskPlan[]): number {
  const calls = asks.flatMap(({ turns }) => turns.flatMap((turn) => turn.calls))
  switch (name) {
    case 'accepted':
    case 'finished':
      return Math.max(1, asks.length - 1)
    case 'asked':
    case 'heard':
      return asks.length
    case 'piece':
      return Math.max(1, Math.floor(asks.flatMap(({ turns }) => turns.flatMap((turn) => turn.pieces)).length * 0.8))
    case 'hit':
    case 'hit_answered':
    case 'observed':
      return Math.max(1, calls.filter(({ decision }) => decision === 'approve').length - 1)
    default:
      return 1
  }
}
