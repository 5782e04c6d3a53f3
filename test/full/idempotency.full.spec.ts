import { describe } from 'vitest'
import { idempotencySuite } from '../suites/idempotency-suite.ts'

describe('idempotency on the full tier', idempotencySuite)
