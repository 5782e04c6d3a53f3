/** Where the full tier's services are; the only place in the tests that reads the environment. */
export interface FullTierServices {
  databaseUrl: string
  redisUrl: string
}

/** The services that `npm run test:full` was given; throws where a full-tier test runs without them. */
export function fullTierServices(): FullTierServices {
  const services = fullTierServicesIfAny()
  if (!services) throw new Error('DATABASE_URL and REDIS_URL are not set: run full-tier tests by `npm run test:full`')
  return services
}

/** The same, for suites that run on both tiers: undefined under `npm test`, which has no services. */
export function fullTierServicesIfAny(): FullTierServices | undefined {
  const { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl } = process.env
  return databaseUrl && redisUrl ? { databaseUrl, redisUrl } : undefined
}

/** Which rounds the fault suite runs: so many seeds, from the first on; both by the arguments of `npm run test:faults`. */
export function faultSeeds(): { first: number; count: number } {
  const { FAULT_SEED: first = '1', FAULT_SEEDS: count = '40' } = process.env
  return { first: Number(first), count: Number(count) }
}

/** The folder of public data sets that a benchmark was given; throws where it was not. */
export function benchData(): string {
  const { LINGTAI_BENCH_DATA: folder } = process.env
  if (!folder) throw new Error('LINGTAI_BENCH_DATA is not set: name the folder with the public data sets')
  return folder
}
