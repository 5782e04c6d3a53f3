export const estimateTokens = (text: string): number => Buffer.byteLength(text)
