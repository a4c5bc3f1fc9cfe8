/** What a status URL carries, so that no table of open requests is needed. */
import { checkKey, checkOperationName } from '../core/record-id.ts';
import type { HttpResponse } from './message.ts';
import { problem } from './problem.ts';

/** What identifies the record, besides the scope. */
export interface TicketParts {
  readonly operation: string;
  readonly key: string;
  readonly fingerprint: string;
}

/** The ticket of a request; no secret: it is asked for together with a scope. */
export function ticketOf({ operation, key, fingerprint }: TicketParts): string {
  return Buffer.from(JSON.stringify([operation, key, fingerprint])).toString('base64url');
}

/** Undefined for what is no ticket of ours. */
export function ticketParts(ticket: string): TicketParts | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(ticket, 'base64url').toString('utf8'));
    if (!Array.isArray(parts) || parts.length !== 3) return undefined;
    if (!parts.every((part) => typeof part === 'string')) return undefined;
    const [operation, key, fingerprint] = parts as [string, string, string];
    if (!/^\d+\.[\w-]{1,100}$/.test(fingerprint)) return undefined;
    return { operation: checkOperationName(operation), key: checkKey(key), fingerprint };
  } catch {
    return undefined;
  }
}

/** The 404 for a ticket with no record behind it. */
export function unknownTicket(): HttpResponse {
  const { status, headers, body } = problem({
    status: 404,
    code: 'RECORD_NOT_FOUND',
    title: 'Nothing is known under this ticket: send the request again with the same key.',
    detail: 'the work was rolled back, has expired, or never began',
  });
  return { status, headers: Object.entries(headers), body: Buffer.from(JSON.stringify(body)) };
}
