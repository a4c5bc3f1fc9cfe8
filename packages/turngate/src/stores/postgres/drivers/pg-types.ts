/** What Turngate calls of `pg`: told by structure, so that no type of a driver is imported. */

/** The part of a `pg` client that Turngate calls; a handler's `tx` is one. */
export interface PgClientLike {
  // biome-ignore lint/suspicious/noExplicitAny: pg's own overloads cannot be told structurally.
  query(config: any, values?: any): any;
}

/** A client checked out of a pool. */
export interface PgPoolClientLike extends PgClientLike {
  release(destroy?: boolean | Error): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
}

/** The part of a `pg.Pool` that Turngate calls. */
export interface PgPoolLike {
  connect(): Promise<PgPoolClientLike>;
  // biome-ignore lint/suspicious/noExplicitAny: pg's own overloads cannot be told structurally.
  query(config: any, values?: any): any;
}
