/** Submit tokens: fetched with a form, spent once with the work the form asks for. */

export {
  type RedisSubmitTokens,
  type RedisTokensOptions,
  redisSubmitTokens,
  type SpentToken,
} from './redis-tokens.ts';
export {
  createSubmitTokens,
  type SubmitTokens,
  type SubmitTokensOptions,
} from './submit-tokens.ts';
export {
  type GivenToken,
  type IssuedToken,
  submitTokenDigest,
  type TokenPurpose,
} from './token.ts';
