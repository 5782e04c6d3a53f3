// The same on PostgreSQL and Redis, which the settings of this tier choose.
import '../light/idempotency.spec.ts'
