/** What an answer, or none, says about the effect. */

/** `unknown`: it may have happened. Ask again with the same key, never with a new one. */
export type IntentOutcome = 'applied' | 'not-applied' | 'unknown';

/** What became of an intent. */
export interface IntentResult {
  readonly outcome: IntentOutcome;
  /** The last answer; undefined when there was none. */
  readonly response: Response | undefined;
  /** Why there is no answer: the network's error, or the abort reason. */
  readonly error: unknown;
  readonly key: string;
  /** How many requests were sent for this result. */
  readonly attempts: number;
}

/** What to do with an answer. */
export interface Verdict {
  /** Is it the intent's last word? Then no earlier attempt can change it. */
  readonly isFinal: boolean;
  readonly outcome: IntentOutcome;
  readonly retry: boolean;
}

const retried: ReadonlySet<number> = new Set([425, 429, 502, 503, 504]);
// Said before any work by servers that do not tell the outcome.
const refusedEarly: ReadonlySet<number> = new Set([
  400, 401, 403, 404, 405, 406, 411, 413, 414, 415, 422, 425, 428, 429, 431, 501,
]);

/** Reads an answer: the layer's own header where it is, the status otherwise. */
export function judge(response: Response): Verdict {
  const { status, headers } = response;
  const said = headers.get('idempotency-outcome');
  const inProgress =
    (status === 409 || status === 202) &&
    (said === 'unknown' || (said === null && status === 409 && headers.has('retry-after')));
  const retry = inProgress || retried.has(status);
  if (said === 'applied') return { isFinal: true, outcome: 'applied', retry: false };
  if (said === 'refused') return { isFinal: true, outcome: 'not-applied', retry: false };
  if (said === 'not-applied') return { isFinal: false, outcome: 'not-applied', retry };
  if (said === 'unknown' || inProgress) return { isFinal: false, outcome: 'unknown', retry };
  if (status < 400) return { isFinal: true, outcome: 'applied', retry: false };
  const outcome = refusedEarly.has(status) ? 'not-applied' : 'unknown';
  return { isFinal: false, outcome, retry };
}

/** Retry-After in milliseconds: seconds or an HTTP date; undefined when absent or unreadable. */
export function retryAfterMs(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  if (!/^[A-Za-z]{3}/.test(text)) return undefined; // Date.parse takes "-1" for a year.
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
