/** Mistakes of the user, apart from failures. */

/** The user's mistake, with a message for the user. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What was named is not there. Exit code 3. */
export class NotFoundError extends Error {
  override readonly name = 'NotFoundError';
}
