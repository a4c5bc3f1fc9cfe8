/** The command line as a value. What it does not know is refused before anything is done. */
import { parseArgs } from 'node:util';
import { didYouMean } from './nearest.ts';

/** What was asked for. */
export type Command =
  | { readonly name: 'help' }
  | { readonly name: 'version' }
  | { readonly name: 'explain'; readonly code: string }
  | { readonly name: 'migrate'; readonly url: string; readonly json: boolean };

/** The user's mistake, with a message for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export const usage = `Usage: turngate <command> [options]

  turngate migrate [--url <postgres url>] [--json]
      Creates or updates Turngate's tables. Without --url it uses DATABASE_URL.
      Needs "pg" or "postgres" installed in the current project.
  turngate explain <CODE>
      Says what an error code means: outcome, HTTP status, advice.

  -h, --help       this text
  -v, --version    the version of this package

Exit code: 0 done, 1 failed, 2 wrong usage.`;

const commands = ['migrate', 'explain'] as const;
const optionsOf: Record<(typeof commands)[number], readonly string[]> = {
  migrate: ['url', 'json'],
  explain: [],
};
const options = {
  url: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

/** @throws UsageError */
export function readCommand(args: readonly string[], env: NodeJS.ProcessEnv): Command {
  const { values, positionals } = parse(args);
  if (values.help) return { name: 'help' };
  if (values.version) return { name: 'version' };
  const [word, ...rest] = positionals;
  const name = commands.find((command) => command === word);
  if (name === undefined) throw unknownCommand(word);
  const foreign = Object.keys(values).find((option) => !optionsOf[name].includes(option));
  if (foreign !== undefined) throw new UsageError(`${name} has no option --${foreign}`);
  if (name === 'explain') return readExplain(rest);
  if (rest.length > 0) {
    throw new UsageError('migrate takes no argument; give the address with --url');
  }
  return { name, url: checkUrl(values.url ?? env['DATABASE_URL']), json: values.json ?? false };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') throw new UsageError(firstLine(message));
    const given = /'(--?[^\s'=]+)/.exec(message)?.[1] ?? '';
    const known = Object.keys(options).map((option) => `--${option}`);
    throw new UsageError(`there is no option ${given}${didYouMean(given, known)}`);
  }
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] as string;
}

function unknownCommand(word: string | undefined): UsageError {
  if (word === undefined) return new UsageError(`say what to do: ${commands.join(' or ')}`);
  // Anything else may be an address with a password in it, which must not be repeated.
  if (!/^[\w-]{1,40}$/.test(word)) return new UsageError('the first word must be a command');
  return new UsageError(`there is no command "${word}"${didYouMean(word, commands)}`);
}

function readExplain(rest: readonly string[]): Command {
  const [code] = rest;
  if (code === undefined || rest.length > 1) {
    throw new UsageError('explain needs one error code, like: turngate explain BUSY');
  }
  return { name: 'explain', code };
}

function checkUrl(url: string | undefined): string {
  if (url === undefined || url === '') {
    throw new UsageError('no database: give --url, or set DATABASE_URL');
  }
  if (!/^postgres(ql)?:\/\/./.test(url)) {
    throw new UsageError('the database url must start with postgres:// or postgresql://');
  }
  return url;
}
