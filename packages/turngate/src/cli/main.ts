#!/usr/bin/env node
/**
 * The `turngate` command. Data goes to stdout, messages to stderr. Exit code: 0 done, 1 failed,
 * 2 wrong usage, 3 not found.
 */
import { readFileSync } from 'node:fs';
import { runAdmin } from './admin.ts';
import { type Command, readCommand, usage } from './command-line.ts';
import { explain } from './explain.ts';
import { runMigrate } from './migrate.ts';
import { NotFoundError, UsageError } from './usage-error.ts';

/** What the command wrote and how it ended. */
async function run(command: Command): Promise<string> {
  switch (command.name) {
    case 'help':
      return usage;
    case 'version':
      return version();
    case 'explain':
      return explain(command.code);
    case 'migrate':
      return await runMigrate(command);
    case 'admin':
      return await runAdmin(command);
  }
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

try {
  const answer = await run(readCommand(process.argv.slice(2), process.env));
  process.stdout.write(`${answer}\n`);
} catch (error) {
  const wrongUsage = error instanceof UsageError;
  process.stderr.write(`turngate: ${(error as Error).message}\n`);
  if (wrongUsage) process.stderr.write('turngate: see turngate --help\n');
  process.exitCode = wrongUsage ? 2 : error instanceof NotFoundError ? 3 : 1;
}
