/** What Redis and its clients answer, in the words of the contract. */
import { isTurngateError, TurngateError } from '../../core/errors.ts';

/** The server refused before doing anything; it may be able to later. */
const outOfService =
  /\b(READONLY|LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN|OOM|BUSY|MISCONF|NOREPLICAS|CROSSSLOT|MOVED|ASK)\b/;

/** The server refused and will go on refusing until somebody changes the set-up. */
const misconfigured =
  /\b(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE)\b|unknown command|user executing the script can't/i;

/** Is the script not in this server's cache? The word may stand anywhere in the text. */
export function isScriptMissing(error: unknown): boolean {
  return messageOf(error).includes('NOSCRIPT');
}

/** Do the keys lie in several slots? Also answered by proxies that hide a cluster. */
export function isCrossSlot(error: unknown): boolean {
  return /CROSSSLOT|hash to the same slot/.test(messageOf(error));
}

/** Has this server no such command, or is it not for us? */
export function isRefused(error: unknown): boolean {
  return misconfigured.test(messageOf(error));
}

/** Does this server know the command, but not in this form? Then it is older than the form. */
export function isOtherSyntax(error: unknown): boolean {
  return /\bsyntax error\b/i.test(messageOf(error));
}

/**
 * The typed error: STORE_UNAVAILABLE with outcome "not-applied" where the server itself refused, and
 * "unknown" where the answer was lost or never came.
 */
export function redisError(error: unknown): TurngateError {
  if (isTurngateError(error)) return error;
  const text = messageOf(error);
  const refused = misconfigured.test(text);
  const temporary = !refused && outOfService.test(text);
  const outcome = refused || temporary ? 'not-applied' : 'unknown';
  const message = refused
    ? `Redis refuses Turngate's commands until its set-up is changed: ${text}`
    : `Redis is not available (${text})`;
  return new TurngateError('STORE_UNAVAILABLE', message, {
    cause: error,
    outcome,
    // Only where trying again is known to be without risk and may help.
    ...(temporary ? { retryAfterMs: 250 } : {}),
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
