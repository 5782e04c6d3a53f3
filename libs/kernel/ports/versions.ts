/** The version of every port by the name of its file (K7): raised when what an adapter has to do changes. */
export const portVersions = Object.freeze({
  'approval-store': 1,
  clock: 1,
  'content-store': 1,
  'effect-ledger': 1,
  'effect-target': 1,
  embedder: 2,
  'embedding-ledger': 1,
  'event-log': 1,
  fanout: 1,
  'job-queue': 1,
  'model-gateway': 1,
  outbox: 1,
  'run-store': 1,
  seat: 1,
  'task-store': 1,
  'unit-of-work': 1,
})
