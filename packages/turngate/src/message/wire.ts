/** How a message is dressed for brokers that carry text headers, and undressed again. */
import type { Message } from './message.ts';

/** Names of the headers a message travels under; consumers in other languages read the same. */
export const wireHeaders = {
  id: 'turngate-id',
  topic: 'turngate-topic',
  key: 'turngate-key',
  sequence: 'turngate-sequence',
  createdMs: 'turngate-created-ms',
} as const;

const ours: ReadonlySet<string> = new Set(Object.values(wireHeaders));

/** The message's own headers with Turngate's; ours win. */
export function toWire(message: Message): Record<string, string> {
  const { id, topic, key, sequence, createdMs, headers } = message;
  return {
    ...headers,
    [wireHeaders.id]: id,
    [wireHeaders.topic]: topic,
    ...(key === undefined ? {} : { [wireHeaders.key]: key }),
    ...(sequence === undefined ? {} : { [wireHeaders.sequence]: String(sequence) }),
    [wireHeaders.createdMs]: String(createdMs),
  };
}

/** What headers say about a message; members that are missing or senseless are undefined. */
export interface WireFacts {
  readonly id: string | undefined;
  readonly topic: string | undefined;
  readonly key: string | undefined;
  readonly sequence: number | undefined;
  readonly createdMs: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads headers by name. */
export function fromWire(all: Readonly<Record<string, unknown>>): WireFacts {
  const text = (name: string): string | undefined => textOf(all[name]);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(all)) {
    const line = textOf(value);
    if (line !== undefined && !ours.has(name)) headers[name] = line;
  }
  return {
    id: text(wireHeaders.id),
    topic: text(wireHeaders.topic),
    key: text(wireHeaders.key),
    sequence: wholeNumber(text(wireHeaders.sequence)),
    createdMs: wholeNumber(text(wireHeaders.createdMs)),
    headers,
  };
}

/** A whole number from text or a number; anything else is undefined. */
export function wholeNumber(value: unknown): number | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

// Kafka hands out bytes, or an array of them when a header comes twice: the last one counts.
function textOf(value: unknown): string | undefined {
  const last: unknown = Array.isArray(value) ? value.at(-1) : value;
  if (typeof last === 'string') return last;
  if (typeof last === 'number' || typeof last === 'boolean') return String(last);
  return last instanceof Uint8Array ? new TextDecoder().decode(last) : undefined;
}
