import { z } from 'zod'
import { meetTrust } from '#contracts'
import type { Trust } from '#contracts'
import type { NoteChange, NoteOutcome, NotesService } from '#domains/tools/notes.service'
import type { NoteScope } from '#domains/tools/ports'
import type { Clock } from '#kernel/ports/clock'
import type { EffectCall, EffectOutcome, LookUp } from '#kernel/ports/effect-target'
import type { JsonValue } from '#kernel/ports/model-gateway'
import { failed, storable } from '../observation.ts'
import { builtinTool, done, jsonObservation } from './builtin-tool.ts'
import type { BuiltinTool } from './builtin-tool.ts'
import type { FindPlace } from './place.ts'

/** Most UTF-16 units of one note. */
const NOTE_MAX_UNITS = 16_000

const noteNumber = z.int().min(1).max(2_147_483_647)

type Parts = { notes: NotesService; findPlace: FindPlace; clock: Clock }

/**
 * `notes.list`, `notes.read`, `notes.write`, `notes.delete`: what the character noted, in the run's realm alone. A note carries the trust
 * of what it was written from and gives it back when it is read (K1).
 */
export function notesTools(parts: Parts): BuiltinTool[] {
  return [listTool(parts), readTool(parts), writeTool(parts), deleteTool(parts)]
}

function listTool({ notes, findPlace, clock }: Parts): BuiltinTool {
  const name = 'notes.list'
  return builtinTool({
    name,
    description: 'Your own notes: number, first line and when each was last changed.',
    arguments: z.strictObject({}),
    act: async (call) => {
      const scope = await scopeOf(call, findPlace)
      if (!scope) return failed('no_realm')
      const rows = await notes.list(scope)
      const value = {
        notes: rows.map(({ number, version, beginning, characters, created_at: at }) => ({
          number,
          version,
          first_line: beginning?.split('\n', 1)[0] ?? null,
          characters,
          changed_at: at.toISOString(),
        })),
      }
      const derivedFrom = rows.flatMap(({ content_id: id }) => id ?? [])
      return done(jsonObservation({ tool: name, value, clock, trust: meetTrust(rows.map((row) => row.trust)), derivedFrom }))
    },
  })
}

function readTool({ notes, findPlace, clock }: Parts): BuiltinTool {
  const name = 'notes.read'
  return builtinTool({
    name,
    description: 'One of your notes by its number, as it is now or as it was at an earlier version.',
    arguments: z.strictObject({ number: noteNumber, version: z.int().min(1).max(2_147_483_647).optional() }),
    act: async (call) => {
      const scope = await scopeOf(call, findPlace)
      if (!scope) return failed('no_realm')
      const note = await notes.read(scope, call.arguments.number, call.arguments.version ?? null)
      if (!note || note.deleted) return failed('no_such_note')
      if (note.text === null) return failed('note_erased')
      const value = { number: note.number, version: note.version, text: note.text, changed_at: note.created_at.toISOString() }
      const derivedFrom = note.content_id === null ? [] : [note.content_id]
      return done(jsonObservation({ tool: name, value, clock, trust: note.trust, derivedFrom }))
    },
  })
}

function writeTool({ notes, findPlace, clock }: Parts): BuiltinTool {
  const name = 'notes.write'
  return builtinTool({
    name,
    description: 'Writes a note of your own: a new one, or with a number the next version of that one. Earlier versions stay readable.',
    arguments: z.strictObject({ text: z.string().trim().min(1).max(NOTE_MAX_UNITS), number: noteNumber.optional() }),
    capability: 'reversible_local',
    consequence: 'lasting',
    undoable: true,
    lookUp: (call) => lookUp({ notes, clock, name }, call),
    act: async (call) => {
      const change = await changeOf(call, findPlace)
      if (!change) return failed('no_realm')
      const { text, number } = call.arguments
      return told({ name, clock, change, outcome: await notes.write({ ...change, text: storable(text), number: number ?? null }) })
    },
  })
}

function deleteTool({ notes, findPlace, clock }: Parts): BuiltinTool {
  const name = 'notes.delete'
  return builtinTool({
    name,
    description: 'Deletes one of your notes. It can be written again under its number.',
    arguments: z.strictObject({ number: noteNumber }),
    capability: 'reversible_local',
    consequence: 'lasting',
    undoable: true,
    lookUp: (call) => lookUp({ notes, clock, name }, call),
    act: async (call) => {
      const change = await changeOf(call, findPlace)
      if (!change) return failed('no_realm')
      return told({ name, clock, change, outcome: await notes.remove({ ...change, number: call.arguments.number }) })
    },
  })
}

type Where = Pick<EffectCall, 'ownerId' | 'characterId' | 'treeId'>

async function scopeOf({ ownerId, characterId, treeId }: Where, findPlace: FindPlace): Promise<NoteScope | null> {
  const place = treeId === null ? null : await findPlace(ownerId, treeId)
  return place && { ownerId, characterId, realmId: place.realmId }
}

async function changeOf(call: Omit<EffectCall, 'arguments'>, findPlace: FindPlace): Promise<NoteChange | null> {
  const scope = await scopeOf(call, findPlace)
  if (!scope) return null
  return {
    scope,
    runId: call.runId,
    trust: call.trust ?? 'untrusted',
    key: call.idempotencyKey,
    argumentsHash: call.argumentsHash,
    argumentsContentId: call.argumentsContentId ?? null,
  }
}

function told({ name, clock, change, outcome }: { name: string; clock: Clock; change: NoteChange; outcome: NoteOutcome }): EffectOutcome {
  return 'refused' in outcome ? failed(outcome.refused) : done(receipt({ name, clock, outcome, trust: change.trust }))
}

function receipt({
  name,
  clock,
  outcome: { number, version },
  trust,
}: {
  name: string
  clock: Clock
  outcome: { number: number; version: number }
  trust: Trust
}) {
  const value: JsonValue = { number, version }
  return jsonObservation({ tool: name, value, clock, trust })
}

async function lookUp(
  { notes, clock, name }: { notes: NotesService; clock: Clock; name: string },
  call: Omit<EffectCall, 'signal'>,
): Promise<LookUp> {
  const found = await notes.lookUp(call.ownerId, call.idempotencyKey)
  if (!found) return { type: 'absent' }
  const observation = receipt({ name, clock, outcome: found, trust: found.trust })
  return { type: 'committed', argumentsHash: found.argumentsHash, observation }
}
