/**
 * What a database error means, dug out of whatever wraps it. By code, never by class (two copies of a
 * driver) and never by text (servers speak many languages).
 */
const links = ['cause', 'original', 'parent', 'driverError'] as const;
const depthMax = 8;

/** The error and everything it wraps, outermost first; safe against cycles. */
export function* errorChain(error: unknown): Generator<Record<string, unknown>> {
  const seen = new Set<unknown>();
  const queue: unknown[] = [error];
  while (queue.length > 0 && seen.size < depthMax) {
    const current = queue.shift();
    if (typeof current !== 'object' || current === null || seen.has(current)) continue;
    seen.add(current);
    const fields = current as Record<string, unknown>;
    yield fields;
    for (const link of links) queue.push(fields[link]);
    const meta = fields['meta'] as { driverAdapterError?: { cause?: unknown } } | undefined;
    queue.push(meta?.driverAdapterError?.cause); // Prisma 7.
  }
}

/** The five-character SQLSTATE somewhere in the chain. */
export function sqlState(error: unknown): string | undefined {
  for (const { code } of errorChain(error)) {
    if (typeof code === 'string' && isSqlState(code)) return code;
  }
  return undefined;
}

/** Five characters with a digit, but not Prisma's own: P2002 looks like one; PL/pgSQL's are P0…. */
function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code) && /\d/.test(code) && !/^P[1-9]/.test(code);
}

const socketCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  // postgres.js
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
]);
// node-postgres raises these without a code.
const lostConnection =
  /^(Connection terminated|Client has encountered a connection error|timeout e|Query read timeout|Client was closed)/;

// 57P01…05: shut down, crashed, starting, dropped, idle. 25P03, 25P04: idle or too long in transaction.
const endedSession = /^(08|57P0[1-5]|25P0[34])/;

/** Did the connection, not the statement, fail? Then nothing is known but what was sent before. */
export function isConnectionLost(error: unknown): boolean {
  for (const { code, message } of errorChain(error)) {
    if (typeof code === 'string') {
      if (socketCodes.has(code) || endedSession.test(code)) return true;
    } else if (typeof message === 'string' && lostConnection.test(message)) return true;
  }
  return false;
}
