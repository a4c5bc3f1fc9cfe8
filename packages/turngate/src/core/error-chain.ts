/** What a wrapped database error wraps, whichever library did it. */
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
