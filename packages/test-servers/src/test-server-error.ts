/** What went wrong, for code that switches on it. */
export type TestServerErrorCode =
  /** The program is not installed. */
  | 'MISSING'
  /** It ended, or was not ready in time; the message carries its last log lines. */
  | 'START_FAILED';

/** A server that could not be started. */
export class TestServerError extends Error {
  override readonly name = 'TestServerError';
  readonly code: TestServerErrorCode;

  constructor(code: TestServerErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
