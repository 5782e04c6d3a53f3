import type { SessionView } from '#contracts'
import type { Config } from '#infra/config/config'

/** What the page says the instance runs on. */
export function describeInstance({
  config,
  version,
  embedder,
}: {
  config: Config
  version: string
  embedder: SessionView['instance']['embedder']
}): SessionView['instance'] {
  const { name, demo, windowTokens } = config.model
  return { tier: config.tier, version, model: { name, demo, window_tokens: windowTokens }, embedder }
}
