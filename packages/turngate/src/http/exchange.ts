/** One request's turn in the layer: the handler runs at most once, its answer is stored or released. */
import { isTurngateError, TurngateError } from '../core/errors.ts';
import { recordIdText } from '../core/record-id.ts';
import type { OperationContext } from '../idempotency/declaration.ts';
import type { HandlerResponse, HttpResponse } from './message.ts';
import type { HttpPolicy } from './options.ts';
import { decodeStored, encodeStored, keepable, type StoredResponse } from './stored-response.ts';

/** Runs the handler and gives its answer; the answer has not left yet. */
export type RunHandler<Tx> = (context: OperationContext<Tx>) => Promise<HandlerResponse>;

/** What travels through the operation: identity, frozen fingerprint, and the handler. */
export interface HttpInput<Tx> {
  readonly scope: string;
  readonly key: string;
  readonly fingerprint: string;
  readonly run: (context: OperationContext<Tx>) => Promise<unknown>;
}

/**
 * Thrown inside the operation to roll back an answer that is not a fact (a 503, a 429, …). Carries
 * what other waiters of the same key may be told.
 */
export class Released extends Error {
  readonly owner: object;
  readonly shared: StoredResponse;

  constructor(owner: object, shared: StoredResponse) {
    super(`answered ${shared.response.status}: rolled back, not stored`);
    this.owner = owner;
    this.shared = shared;
  }
}

/** The handler's side of one request. */
export class Exchange<Tx, Native> {
  /** Set when the handler threw instead of answering. */
  failure: { readonly error: unknown } | undefined;
  /** The status the handler answered with; undefined before that. */
  status: number | undefined;
  began = false;
  private readonly policy: HttpPolicy<Native>;
  private readonly native: Native;
  private readonly handler: RunHandler<Tx>;
  private readonly repeatable: boolean;

  constructor(
    policy: HttpPolicy<Native>,
    native: Native,
    handler: RunHandler<Tx>,
    repeatable: boolean,
  ) {
    this.policy = policy;
    this.native = native;
    this.handler = handler;
    this.repeatable = repeatable;
  }

  /** The work of the operation: the returned form is stored, a throw rolls back. */
  run = async (operation: string, context: OperationContext<Tx>): Promise<unknown> => {
    // A framework's chain cannot be run twice for one request; the client's retry will.
    if (this.began && !this.repeatable) {
      const message = 'the database rolled the transaction back; send the request again';
      throw new TurngateError('TRANSACTION_CONFLICT', message, { retryAfterMs: 1_000 });
    }
    this.began = true;
    let response: HandlerResponse;
    try {
      response = await this.handler(context);
    } catch (error) {
      this.failure = { error };
      throw error;
    }
    this.status = response.status;
    const { policy } = this;
    const kept = keepable(response, policy.keep);
    const isFact = response.unanswered !== true && policy.storeStatus(response.status);
    if (!isFact) throw new Released(this, kept);
    const { scope, key } = context;
    return await seal(policy, this.redacted(kept), recordIdText({ operation, scope, key }));
  };

  private redacted(stored: StoredResponse): StoredResponse {
    const { redact } = this.policy;
    if (redact === undefined) return stored;
    const given: HttpResponse = redact(stored.response, this.native);
    // A hook must not bring back what the allow-list took out.
    const again = keepable(given, this.policy.keep);
    return stored.kind === 'kept' ? again : { ...stored, response: again.response };
  }
}

async function seal<Native>(
  policy: HttpPolicy<Native>,
  stored: StoredResponse,
  identity: string,
): Promise<unknown> {
  const form = encodeStored(stored);
  const { codec } = policy;
  if (codec === undefined) return form;
  return ['e', codec.keyId, await codec.seal(JSON.stringify(form), identity)];
}

/** @throws RECORD_UNREADABLE when the record cannot be opened; the work is not run again for it */
export async function unseal<Native>(
  policy: HttpPolicy<Native>,
  value: unknown,
  identity: string,
): Promise<StoredResponse> {
  if (!Array.isArray(value) || value[0] !== 'e') return decodeStored(value);
  const { codec } = policy;
  if (codec === undefined) {
    throw new TurngateError('RECORD_UNREADABLE', 'the stored response is sealed; set codec');
  }
  const [, keyId, sealed] = value as [string, string, string];
  try {
    return decodeStored(JSON.parse(await codec.open(keyId, sealed, identity)));
  } catch (cause) {
    if (isTurngateError(cause)) throw cause;
    throw new TurngateError('RECORD_UNREADABLE', 'the stored response cannot be opened', { cause });
  }
}
