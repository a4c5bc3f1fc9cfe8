/** `turngate migrate`: brings the tables up to date through the driver of the user's project. */
import { isTurngateError } from '../core/errors.ts';
import type { MigrationReport } from '../stores/postgres/index.ts';
import { openClient } from './client.ts';
import { withoutSecrets } from './secrets.ts';

/** What `migrate` was told. */
export interface MigrateCommand {
  readonly url: string;
  readonly json: boolean;
}

/** @throws Error with the code and message of the failure, and without the password */
export async function runMigrate({ url, json }: MigrateCommand): Promise<string> {
  try {
    const { migrate, end } = await openClient(url);
    try {
      const report = await migrate();
      return json ? JSON.stringify(report) : inWords(report);
    } finally {
      await end();
    }
  } catch (error) {
    // Without the cause: drivers put their settings, password included, on their errors.
    throw new Error(withoutSecrets(describe(error), url));
  }
}

/** The message with its code, without the cause. */
export function describe(error: unknown): string {
  const { message } = error as Error;
  return isTurngateError(error) ? `${error.code}: ${message}` : message;
}

function inWords({ applied, version }: MigrationReport): string {
  const done = applied.length === 0 ? 'nothing to apply' : `applied ${applied.join(', ')}`;
  return `${done}; the schema is at version ${version}`;
}
