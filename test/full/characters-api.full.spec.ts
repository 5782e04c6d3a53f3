// The same on PostgreSQL and Redis, which the settings of this tier choose.
import '../light/characters-api.spec.ts'
