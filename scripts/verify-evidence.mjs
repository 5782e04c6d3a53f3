// node scripts/verify-evidence.mjs FILE [--key BASE64]: checks a file that GET /v1/runs/{id}/evidence or GET /v1/tasks/{id}/evidence answered,
// with Node (from 18) and that file alone. Of a task: the signature, the chains of its stream and its attempts', and that its lists say what
// these events say. Of a run: recomputes the chain of the run's events, the digests of every content that is still there, the request digests, the way from
// the chain to the signed anchor, and both signatures. Exits with 1 where anything differs, with 2 where there is nothing to check.
// `--key` is the instance's public key as one knows it from elsewhere: without it the file proves that it is whole, not whose it is.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'

const [file, option, pinned, ...rest] = process.argv.slice(2)
if (!file || (option !== undefined && (option !== '--key' || !pinned)) || rest.length > 0) {
  process.stderr.write('node verify-evidence.mjs FILE [--key BASE64]\n')
  process.exit(2)
}

const faults = []
const notes = []
const check = (holds, fault) => {
  if (!holds) faults.push(fault)
}

const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
const hex = (bytes) => Buffer.from(bytes).toString('hex')

/** RFC 8785. */
function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.keys(value).sort((left, right) => (left < right ? -1 : 1))
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`).join(',')}}`
}
const same = (left, right) => canonicalJson(left) === canonicalJson(right)

function isSigned(text, publicKey, signature) {
  const raw = Buffer.from(publicKey, 'base64')
  // One spelling of each: what decodes to the same bytes is still another file.
  if (raw.length !== 32 || raw.toString('base64') !== publicKey || Buffer.from(signature, 'base64').toString('base64') !== signature)
    return false
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') }, format: 'jwk' })
  return verify(null, Buffer.from(text, 'utf8'), key, Buffer.from(signature, 'base64'))
}

try {
  const bytes = readFileSync(file)
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  const evidence = JSON.parse(text)
  check(evidence.lingtai_evidence === 1 || evidence.lingtai_task_evidence === 1, 'the file is no evidence of a version that is known here')
  check(JSON.stringify(evidence) === text.replace(/\n$/, ''), 'the file is not spelled as it was written')
  if (evidence.lingtai_task_evidence === 1) checkTask(evidence)
  else checkStatement(evidence)
} catch (error) {
  faults.push(`the file cannot be read: ${error.message}`)
}

function checkStatement(evidence) {
  const { statement, public_key: key, signature } = evidence
  check(same(Object.keys(evidence).sort(), ['lingtai_evidence', 'public_key', 'signature', 'statement']), 'the file has other members')
  check(isSigned(canonicalJson(statement), key, signature), 'the statement is not signed by the key that it names')
  const records = checkChain(`run:${statement.run.id}`, statement.events)
  checkContents(statement, records)
  checkRequests(records)
  checkSummaries(statement, records)
  checkProof(statement, key)
  checkKey(key)
}

function checkKey(key) {
  if (pinned !== undefined) check(key === pinned, `the key is ${key}, not ${pinned}`)
  else notes.push(`signed by ${key}: compare it with the key that you know, or give --key`)
}

/** Answers the events of a stream, which has to be whole from its first one. */
function checkChain(stream, events) {
  let previous = Buffer.alloc(32)
  return events.map((event, index) => {
    const where = `${stream}, event ${index + 1}`
    previous = sha256(previous, Buffer.from(event.canonical, 'utf8'))
    check(hex(previous) === event.hash, `${where}: its hash does not follow`)
    const record = JSON.parse(event.canonical)
    check(canonicalJson(record) === event.canonical, `${where}: its bytes are not canonical`)
    check(record.stream === stream && record.seq === index + 1 && event.seq === index + 1, `${where}: it belongs elsewhere`)
    return record
  })
}

function checkContents({ contents, question, candidate }, records) {
  const known = new Map(contents.map((content) => [content.id, content]))
  check(known.size === contents.length, 'a content stands in the file twice')
  let erased = 0
  for (const content of contents) {
    const { id, salt, body, bytes, digest } = content
    if (content.erased) {
      erased += 1
      check(salt === null && body === null && bytes === null && content.segments.length === 0, `content ${id}: erased, and yet there`)
    } else if (digest !== null) {
      const given = body === null ? Buffer.from(bytes, 'base64') : Buffer.from(body, 'utf8')
      check(hex(sha256(Buffer.from(salt, 'base64'), given)) === digest, `content ${id}: its digest differs`)
    }
  }
  const referred = new Set([question?.content_id, candidate?.content_id])
  for (const record of records) {
    for (const { content_id: id, digest, segment } of record.content_digests) {
      referred.add(id)
      const content = known.get(id)
      const where = `event ${record.seq}, content ${id}`
      if (!content) check(false, `${where}: it is missing`)
      else if (segment === undefined) check(content.digest === null || content.digest === digest, `${where}: another digest was recorded`)
      else if (!content.erased) {
        const range = content.segments[segment]
        const share = range && sha256(Buffer.from(range.salt, 'base64'), Buffer.from(content.body.slice(range.from, range.to), 'utf8'))
        check(share !== undefined && hex(share) === digest, `${where}: its part ${segment} differs`)
      }
    }
  }
  for (const id of known.keys()) check(referred.has(id), `content ${id}: nothing refers to it`)
  notes.push(`${contents.length} contents, ${erased} of them erased`)
}

/** What was sent is what was projected: SHA-256 over the digests of its parts, in order. */
function checkRequests(records) {
  const projected = new Map(records.filter(({ type }) => type === 'context.projected').map(({ payload }) => [payload.turn, payload]))
  for (const { type, seq, payload } of records) {
    const context = type === 'llm.requested' ? projected.get(payload.turn) : undefined
    if (!context) continue
    const lines = [`layout:${context.layout_version}`, `frame:${context.frame_digest}`]
    for (const piece of context.pieces) {
      lines.push(piece.kind === 'path' ? `path:${piece.nodes}:${piece.digest}` : `${piece.kind}:${piece.role}:${piece.digest}`)
    }
    const digest = hex(sha256(lines.map((line) => `${line}\n`).join('')))
    check(digest === payload.request_digest, `event ${seq}: the request is not what was projected`)
  }
}

/** The lists beside the events say nothing that the events do not say. */
function checkSummaries({ run, policies, effects, usage, candidate, question }, records) {
  for (const [name, entries] of Object.entries({ policies, effects })) {
    for (const { seq, type, payload } of entries) {
      const record = records[seq - 1]
      check(record?.type === type && same(record.payload, payload), `${name}: event ${seq} says something else`)
    }
  }
  const of = (type) => records.filter((record) => record.type === type).map((record) => record.payload)
  const sum = (payloads, name) => payloads.reduce((total, payload) => total + payload[name], 0)
  const completed = of('llm.completed')
  const settled = of('budget.settled')
  check(
    same(usage, {
      requests: of('llm.requested').length,
      prompt_tokens: sum(completed, 'prompt_tokens'),
      completion_tokens: sum(completed, 'completion_tokens'),
      settled_tokens: sum(settled, 'tokens'),
      estimated: settled.some((payload) => payload.estimated),
    }),
    'usage: the events add up to something else',
  )
  const [requested] = of('run.requested')
  check(records.length === 0 || records[0].owner_id === run.owner_id, 'the run belongs to somebody else')
  check(!requested || requested.question_id === (question?.id ?? null) || question === null, 'the question is another one')
  check(!candidate || requested?.candidate_id === candidate.id, 'the answer is another one')
  const last = records.at(-1)?.type
  if (['finished', 'interrupted', 'failed'].includes(run.state) && run.reason !== 'chain_broken') {
    check(last === `run.${run.state}`, `the run is said to be ${run.state} and its last event is ${last}`)
  }
}

function checkProof({ run, events, proof, instance_id: instance }) {
  if (!proof) {
    notes.push('no anchor covers this run yet: events at its end could be missing')
    return
  }
  const { anchor, head, path } = proof
  const body = JSON.parse(anchor.canonical)
  check(canonicalJson(body) === anchor.canonical && hex(sha256(anchor.canonical)) === anchor.hash, 'the anchor is not canonical')
  check(isSigned(anchor.canonical, anchor.public_key, anchor.signature), 'the anchor is not signed by the key that it names')
  check(body.seq === anchor.seq && body.instance_id === instance, 'the anchor is another’s')
  check(
    head.stream === `run:${run.id}` && events[head.seq - 1]?.hash === head.hash,
    'the anchor covers another event than the one that is here',
  )
  let node = sha256(Buffer.of(0), canonicalJson([head.stream, head.seq, head.hash]))
  for (const { side, hash } of path) {
    const other = Buffer.from(hash, 'hex')
    node = side === 'left' ? sha256(Buffer.of(1), other, node) : sha256(Buffer.of(1), node, other)
  }
  check(hex(node) === body.heads_root, 'the way to the anchor leads elsewhere')
  notes.push(`anchor ${anchor.seq} of ${body.at} covers ${head.seq} of ${events.length} events; its key is ${anchor.public_key}`)
}

// ------------------------------------------------------------ tasks

function checkTask({ public_key: key, signature, ...rest }) {
  check(isSigned(canonicalJson(rest), key, signature), 'the package is not signed by the key that it names')
  const { task, attempts, proof } = rest
  const streams = [`task:${task.task_id}`, ...attempts.map(({ attempt_id: id }) => `run:${id}`)]
  check(
    same(
      proof.map(({ stream }) => stream),
      streams,
    ),
    'the streams are not those of the task and its attempts',
  )
  const records = proof.map(({ stream, events, whole }) => {
    check(whole === true, `${stream} is said not to be whole`)
    return checkChain(stream, events)
  })
  checkTaskLists(rest, records[0] ?? [])
  checkTaskEffects(rest, records.slice(1).flat())
  checkKey(key)
  notes.push(`task ${task.task_id}: ${attempts.length} attempts, ${records.flat().length} events`)
}

/** The lists beside the task's own events say nothing that these do not say. */
function checkTaskLists({ task, attempts, actions, candidate, policies, verification, final_commit: commit, lineage }, records) {
  const of = (type) => records.filter((record) => record.type === type).map((record) => record.payload)
  const last = (type, holds) => of(type).findLast(holds)
  const ids = (entries, name) => entries.map((entry) => entry[name]).sort()
  const [created] = of('task.created')
  check(
    records[0]?.type === 'task.created' && created.task_id === task.task_id && records[0].owner_id === task.tenant,
    'task: the first event is of another one',
  )
  for (const name of ['requested_by', 'commit_authority', 'parent_run_id']) {
    check(created?.[name] === task[name] && lineage[name] === task[name], `task: ${name} differs`)
  }
  check(task.status === (of('task.changed').at(-1)?.to ?? 'open'), `task: it is said to be ${task.status}, its events say otherwise`)
  check(same(ids(attempts, 'attempt_id'), ids(of('attempt.started'), 'attempt_id')), 'attempts: others were started')
  for (const { attempt_id: id, status } of attempts) {
    const changed = last('attempt.changed', (payload) => payload.attempt_id === id)
    check(!changed || changed.to === status, `attempt ${id}: it is said to be ${status}, its events say otherwise`)
  }
  check(same(ids(actions, 'action_id'), ids(of('action.submitted'), 'action_id')), 'actions: others were submitted')
  for (const { action_id: id, arguments_hash: hash, type, state, charged_micros: charged } of actions) {
    const submitted = last('action.submitted', (payload) => payload.action_id === id)
    check(submitted?.arguments_hash === hash && submitted.tool === type, `action ${id}: another one was submitted`)
    const settled = last('action.settled', (payload) => payload.action_id === id)
    if (settled) check(settled.to === state && settled.charged_micros === (charged ?? 0), `action ${id}: its events say otherwise`)
  }
  const told = policies.map((policy) => [policy.action_id, policy.decision, policy.policy_version])
  const decided = of('action.decided').map((payload) => [payload.action_id, payload.decision, payload.policy_version])
  check(same(told.map(canonicalJson).sort(), decided.map(canonicalJson).sort()), 'policies: something else was decided')
  const verified = of('candidate.verified').at(-1)
  check(
    (verified?.verification_id ?? null) === (verification?.verification_id ?? null) &&
      (!verified || (verified.status === verification.status && verified.candidate_id === verification.candidate_id)),
    'verification: its events say otherwise',
  )
  const sealed = last('candidate.sealed', (payload) => payload.candidate_id === verification?.candidate_id)
  const hashes = (artifacts) => artifacts.map(({ artifact_id: id, hash }) => `${id} ${hash}`).sort()
  check(same(hashes(candidate), hashes(sealed?.artifacts ?? [])), 'candidate: another one was sealed')
  const committed = of('candidate.committed').at(-1)
  check(
    (committed?.evidence_digest ?? null) === (commit?.digest ?? null) && (committed?.by ?? null) === (commit?.by ?? null),
    'commit: its event says otherwise',
  )
}

/** What went out, by the task's own actions or by the runs of its attempts, was bound before and has one end. */
function checkTaskEffects({ effects, actions }, records) {
  const intents = new Set(records.flatMap(({ type, payload }) => (type === 'effect.intent' ? [payload.effect_id] : [])))
  const bound = new Set(actions.flatMap(({ effect_id: id }) => id ?? []))
  for (const { effect_id: id } of effects) check(intents.has(id) || bound.has(id), `effect ${id}: nobody bound it`)
  const listed = new Set(effects.map(({ effect_id: id }) => id))
  for (const id of [...intents, ...bound]) check(listed.has(id), `effect ${id}: it is left out`)
}

for (const note of notes) process.stdout.write(`${note}\n`)
for (const fault of faults.slice(0, 50)) process.stderr.write(`${fault}\n`)
process.stdout.write(faults.length === 0 ? 'The evidence holds.\n' : `The evidence does not hold: ${faults.length} faults.\n`)
process.exitCode = faults.length === 0 ? 0 : 1
