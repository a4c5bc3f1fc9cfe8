/** A `fetch` that keeps one key per intent over all its retries. */
import { TurngateError } from '../core/errors.ts';
import { functionOption, integerOption, knownOptions, optionError } from '../core/option.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { backoffMs, sleep } from '../runtime/wait.ts';
import { webRuntime } from '../runtime/web-runtime.ts';
import { type IntentResult, judge, retryAfterMs, type Verdict } from './outcome.ts';

/** Options of {@link createIdempotentFetch}. */
export interface IdempotentFetchOptions {
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Request header of the key. Default `Idempotency-Key`. */
  readonly header?: string;
  /** Makes the key of a new intent. Default: 128 random bits. */
  readonly newKey?: () => string;
  /** @unit requests per call, integer, 1 to 100 @default 6 */
  readonly attemptsMax?: number;
  /** For all attempts and pauses of a call. @unit milliseconds, integer, 1 to 86_400_000 @default 60_000 */
  readonly budgetMs?: number;
  /** For one attempt. @unit milliseconds, integer, 1 to 3_600_000 @default 30_000 */
  readonly attemptMs?: number;
  /** First ceiling of the full-jitter pause. @unit milliseconds, integer, 1 to 60_000 @default 200 */
  readonly baseMs?: number;
  /** Last ceiling of it. @unit milliseconds, integer, 1 to 600_000 @default 10_000 */
  readonly capMs?: number;
  /** @internal */
  readonly runtime?: Runtime;
}

/** One thing the user wants once. Keep it for as long as the user wants it. */
export interface Intent {
  readonly key: string;
  /**
   * Sends it, and sends it again while that can help. Call it again after `unknown`: the key stays.
   * Never throws for what the network or server did; see `outcome`.
   *
   * @throws IDEMPOTENCY_KEY_REUSED for another method, URL or body than before; OPTION_INVALID for a
   * stream as body, which cannot be sent twice
   */
  fetch(url: string | URL, init?: RequestInit): Promise<IntentResult>;
}

/** Each call is a new intent with a new key. */
export interface IdempotentFetch {
  (url: string | URL, init?: RequestInit): Promise<IntentResult>;
  /** An intent to be sent now and perhaps later again; with a key that was stored, the same one. */
  intent(key?: string): Intent;
}

interface Settings {
  readonly fetch: typeof globalThis.fetch;
  readonly header: string;
  readonly newKey: () => string;
  readonly attemptsMax: number;
  readonly budgetMs: number;
  readonly attemptMs: number;
  readonly pause: { readonly baseMs: number; readonly capMs: number };
  readonly runtime: Runtime;
}

/**
 * Makes the wrapper. Retried: no answer, 409 while the first runs, 425, 429, 502, 503, 504; not
 * before Retry-After. A first that is known to be done, refused or impossible ends it.
 *
 * @throws OPTION_INVALID
 */
export function createIdempotentFetch(options: IdempotentFetchOptions = {}): IdempotentFetch {
  const settings = checkOptions(options);
  const intent = (key = settings.newKey()): Intent => new KeptIntent(settings, key);
  return Object.assign(
    (url: string | URL, init?: RequestInit): Promise<IntentResult> => intent().fetch(url, init),
    { intent },
  );
}

function checkOptions(options: IdempotentFetchOptions): Settings {
  const { header = 'Idempotency-Key', runtime = webRuntime } = options;
  const numbers = ['attemptsMax', 'budgetMs', 'attemptMs', 'baseMs', 'capMs'];
  const known = ['fetch', 'header', 'newKey', 'runtime', ...numbers];
  knownOptions('createIdempotentFetch()', options, known);
  if (options.fetch !== undefined) functionOption('fetch', options.fetch);
  if (options.newKey !== undefined) functionOption('newKey', options.newKey);
  if (!/^[A-Za-z0-9-]+$/.test(header)) throw optionError('header', 'a header name', header);
  const number = (
    name: 'attemptsMax' | 'budgetMs' | 'attemptMs' | 'baseMs' | 'capMs',
    max: number,
    fallback: number,
  ): number => integerOption(name, options[name], { min: 1, max, fallback });
  return {
    header,
    runtime,
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    newKey: options.newKey ?? ((): string => runtime.randomId()),
    attemptsMax: number('attemptsMax', 100, 6),
    budgetMs: number('budgetMs', 86_400_000, 60_000),
    attemptMs: number('attemptMs', 3_600_000, 30_000),
    pause: { baseMs: number('baseMs', 60_000, 200), capMs: number('capMs', 600_000, 10_000) },
  };
}

/** A request frozen at the intent's first call, so that every attempt sends the same bytes. */
interface Frozen {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer> | undefined;
}

class KeptIntent implements Intent {
  readonly key: string;
  private readonly settings: Settings;
  private first: Frozen | undefined;
  /** An attempt may have been applied and nobody said so yet. */
  private inDoubt = false;

  constructor(settings: Settings, key: string) {
    this.settings = settings;
    this.key = key;
  }

  async fetch(url: string | URL, init: RequestInit = {}): Promise<IntentResult> {
    const frozen = await freeze(url, init, this.settings.header, this.key);
    this.first ??= frozen;
    if (!sameRequest(this.first, frozen)) {
      const message = 'this intent was another request; a new intent needs a new key';
      throw new TurngateError('IDEMPOTENCY_KEY_REUSED', message);
    }
    return await this.send(frozen, init);
  }

  private async send(frozen: Frozen, init: RequestInit): Promise<IntentResult> {
    const { runtime, attemptsMax, budgetMs, pause } = this.settings;
    const signal = init.signal ?? undefined;
    const endMonoMs = runtime.monoMs() + budgetMs;
    for (let attempts = 1; ; attempts++) {
      if (signal?.aborted) return this.result(undefined, signal.reason, attempts - 1);
      const seen = await this.attempt(frozen, init, endMonoMs - runtime.monoMs());
      const result = this.result(seen.response, seen.error, attempts, seen.verdict);
      if (!seen.verdict.retry || signal?.aborted || attempts >= attemptsMax) return result;
      const jitterMs = backoffMs(runtime, attempts - 1, pause);
      const header = seen.response?.headers.get('retry-after') ?? null;
      const delayMs = Math.max(jitterMs, retryAfterMs(header, runtime.wallMs()) ?? 0);
      if (runtime.monoMs() + delayMs >= endMonoMs) return result;
      try {
        await sleep(runtime, delayMs, signal);
      } catch {
        return result; // Aborted while pausing: the last answer still says what is known.
      }
      await seen.response?.body?.cancel().catch(() => {});
    }
  }

  private async attempt(
    frozen: Frozen,
    init: RequestInit,
    leftMs: number,
  ): Promise<{ response: Response | undefined; error: unknown; verdict: Verdict }> {
    const { runtime, attemptMs } = this.settings;
    const cut = new AbortController();
    // The caller's signal goes on to end the reading of the body, when ours is over.
    const signal = init.signal ? AbortSignal.any([init.signal, cut.signal]) : cut.signal;
    const limitMs = Math.max(1, Math.min(attemptMs, leftMs));
    const timer = runtime.timer(limitMs, true, () => cut.abort(new Error('no answer in time')));
    const { url, method, headers, body = null } = frozen;
    try {
      const request = { ...init, method, headers: new Headers(headers), body, signal };
      const response = await this.settings.fetch(url, request);
      return { response, error: undefined, verdict: judge(response) };
    } catch (error) {
      return { response: undefined, error, verdict: noAnswer };
    } finally {
      timer.cancel();
    }
  }

  /**
   * "Not applied" is said about one attempt. With an earlier one in doubt, which may arrive late, it
   * is not the intent's last word; a stored answer is, because whoever comes later gets it too.
   */
  private result(
    response: Response | undefined,
    error: unknown,
    attempts: number,
    verdict: Verdict = this.inDoubt || attempts > 0 ? noAnswer : neverSent,
  ): IntentResult {
    if (verdict.isFinal) this.inDoubt = false;
    else if (verdict.outcome === 'unknown') this.inDoubt = true;
    const outcome = !verdict.isFinal && this.inDoubt ? 'unknown' : verdict.outcome;
    return { outcome, response, error, key: this.key, attempts };
  }
}

const noAnswer: Verdict = { isFinal: false, outcome: 'unknown', retry: true };
const neverSent: Verdict = { isFinal: false, outcome: 'not-applied', retry: false };

async function freeze(
  url: string | URL,
  init: RequestInit,
  header: string,
  key: string,
): Promise<Frozen> {
  if (init.body instanceof ReadableStream) {
    throw optionError('body', 'something that can be sent twice, not a stream', init.body);
  }
  const { signal: _signal, ...plain } = init;
  // A Request turns any body into bytes with their content type: form boundaries are drawn once.
  const request = new Request(url, { method: 'POST', ...plain });
  const bytes = new Uint8Array(await request.arrayBuffer());
  const headers = new Headers(request.headers);
  headers.set(header, key);
  const hasBody = init.body !== undefined && init.body !== null;
  return { url: request.url, method: request.method, headers, body: hasBody ? bytes : undefined };
}

function sameRequest(a: Frozen, b: Frozen): boolean {
  if (a.method !== b.method || a.url !== b.url) return false;
  const [x, y] = [a.body, b.body];
  if (x === undefined || y === undefined) return x === y;
  return x.length === y.length && x.every((byte, i) => byte === y[i]);
}
