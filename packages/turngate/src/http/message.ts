/** Requests and responses as plain values, so that the protocol is written once for all frameworks. */

/** A request body: the bytes, or what a parser left of them. */
export type RequestBody = Uint8Array | { readonly parsed: unknown };

/** A request as the protocol sees it. `native` is the framework's own, for scope and fingerprint. */
export interface HttpRequest<Native = unknown> {
  readonly method: string;
  /** The route's template, such as `/orders/:id/pay`; undefined when the framework does not tell. */
  readonly route: string | undefined;
  /** Path and query as they came. */
  readonly url: string;
  readonly native: Native;
  /** A header by lower-case name. */
  header(name: string): string | readonly string[] | undefined;
  /**
   * The raw body. Called only when the request enters the layer.
   *
   * @throws PAYLOAD_TOO_LARGE
   */
  readBody(bytesMax: number): Promise<RequestBody>;
}

/** Header lines in order; names in any case, repeated names allowed. */
export type HeaderLines = readonly (readonly [name: string, value: string])[];

/** A response with its whole body. `null`: no body at all, as 204, 205 and 304 must be. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: HeaderLines;
  readonly body: Uint8Array | null;
}

/** A response as a handler gave it. `stream`: its bytes follow later and are not kept. */
export interface HandlerResponse {
  readonly status: number;
  readonly headers: HeaderLines;
  readonly body: Uint8Array | null | 'stream';
  /** Nobody answered, and the framework will say 404 by itself: not a fact, never stored. */
  readonly unanswered?: true;
}

/** Statuses whose response has no body by definition. */
export const nullBodyStatuses: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** The first value of a header; names are compared in any case. */
export function headerValue(headers: HeaderLines, name: string): string | undefined {
  return headers.find(([given]) => given.toLowerCase() === name)?.[1];
}

/** Header lines of a record of values, as frameworks hand them over. */
export function headerLines(headers: Readonly<Record<string, unknown>>): HeaderLines {
  const lines: (readonly [string, string])[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || value === null) continue;
    if (Array.isArray(value)) for (const one of value) lines.push([name, String(one)]);
    else lines.push([name, String(value)]);
  }
  return lines;
}

/** Header lines as a record; a repeated name becomes a list. */
export function headerRecord(headers: HeaderLines): Record<string, string | string[]> {
  const record: Record<string, string | string[]> = {};
  for (const [name, value] of headers) {
    const before = record[name];
    if (before === undefined) record[name] = value;
    else record[name] = Array.isArray(before) ? [...before, value] : [before, value];
  }
  return record;
}
