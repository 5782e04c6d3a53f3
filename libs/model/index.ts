export { DEMO_MODEL_NAME, startDemoModel, type DemoModel } from './demo/demo-model.ts'
export { ESTIMATE_ID, estimateTokens } from './estimate-tokens.ts'
export { createLexicalEmbedder, isDegenerate } from './lexical-embedder.ts'
export {
  createOpenAiGateway,
  DEFAULT_STREAM_LIMITS,
  RequestMismatchError,
  type ModelEndpoint,
  type OpenAiGateway,
  type OpenAiGatewayOptions,
} from './openai-gateway.ts'
export type { StreamLimits } from './read-completion.ts'
export { DEFAULT_RETRY_POLICY, retryDelayMs, type RetryPolicy } from './retry.ts'
export { createSecretMasker, maskSecrets, SECRET_MASK, type SecretMasker } from './secret-mask.ts'
export { createTokenizers, type Tokenizer, type TokenizerId, type Tokenizers } from './tokenizers.ts'
