/** The command line as a value. What it does not know is refused before anything is done. */
import { parseArgs } from 'node:util';
import { type AdminCommand, readAdmin } from './admin-command.ts';
import { adminOptions, adminUsage, adminVerbs } from './admin-words.ts';
import { didYouMean } from './nearest.ts';
import { UsageError } from './usage-error.ts';

/** What was asked for. */
export type Command =
  | { readonly name: 'help' }
  | { readonly name: 'version' }
  | { readonly name: 'explain'; readonly code: string }
  | { readonly name: 'migrate'; readonly url: string; readonly json: boolean }
  | AdminCommand;

export const usage = `Usage: turngate <command> [options]

  turngate migrate [--url <postgres or mysql url>] [--json]
      Creates or updates Turngate's tables. Without --url it uses DATABASE_URL.
      Needs "pg", "postgres" or "mysql2" installed in the current project.
  turngate explain <CODE>
      Says what an error code means: outcome, HTTP status, advice.
${adminUsage}

  -h, --help       this text
  -v, --version    the version of this package

Data goes to stdout, messages to stderr. Exit code: 0 done, 1 failed, 2 wrong usage, 3 not found.`;

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
  ...adminOptions,
} as const;

/** @throws UsageError */
export function readCommand(args: readonly string[], env: NodeJS.ProcessEnv): Command {
  const { values, positionals } = parse(args);
  if (values.help) return { name: 'help' };
  if (values.version) return { name: 'version' };
  const [word, ...rest] = positionals;
  if (word !== undefined && Object.hasOwn(adminVerbs, word)) {
    return readAdmin(word, rest, values, env);
  }
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
  const known = [...commands, ...Object.keys(adminVerbs)];
  return new UsageError(`there is no command "${word}"${didYouMean(word, known)}`);
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
  if (!/^(postgres(ql)?|mysql|mariadb):\/\/./.test(url)) {
    throw new UsageError('the database url must start with postgres://, postgresql:// or mysql://');
  }
  return url;
}
