/** What went wrong, for code that switches on it. */
export type EmbeddedPostgresErrorCode =
  /** There are no PostgreSQL binaries for this platform, or they are incomplete. */
  | 'NO_BINARIES'
  /** Another live process owns the data directory. */
  | 'DATA_DIR_IN_USE'
  /** PostgreSQL's own user cannot reach the binaries or the data. */
  | 'NOT_REACHABLE'
  /** `initdb` or `postgres` ended, or was not ready in time; the message has its last log lines. */
  | 'START_FAILED';

/** A PostgreSQL that could not be started. The message names the cause and a way out. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
  readonly code: EmbeddedPostgresErrorCode;

  constructor(code: EmbeddedPostgresErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
