/** The operators' part of the command line as a value. */
import { userInfo } from 'node:os';
import type { RecordId } from '../core/record-id.ts';
import { globalScope } from '../core/record-id.ts';
import { adminVerbs } from './admin-words.ts';
import { didYouMean } from './nearest.ts';
import { UsageError } from './usage-error.ts';

/** The options as parsed. */
export type Values = Readonly<Record<string, string | boolean | undefined>>;

/** What an operator asked for. */
export interface AdminCommand {
  readonly name: 'admin';
  readonly area: 'records' | 'staged' | 'locks' | 'audit';
  readonly verb: string;
  readonly acts: boolean;
  /** Where records, staged operations and the audit log are. */
  readonly databaseUrl: string;
  readonly redisUrl: string | undefined;
  readonly id: RecordId;
  readonly lockName: string;
  readonly filter: Readonly<Record<string, string | number>>;
  readonly payload: boolean;
  readonly step: string;
  readonly happened: { readonly happened: true; readonly result: unknown } | { happened: false };
  readonly reason: string;
  readonly actor: string;
  readonly yes: boolean;
  readonly json: boolean;
}

const common = ['pg', 'mysql', 'json'];
const acting = ['reason', 'actor', 'yes'];

/** @throws UsageError */
export function readAdmin(
  area: string,
  rest: readonly string[],
  values: Values,
  env: NodeJS.ProcessEnv,
): AdminCommand {
  const verbs = adminVerbs[area] as (typeof adminVerbs)[string];
  const names = Object.keys(verbs);
  const [word, extra] = rest;
  if (word === undefined) throw new UsageError(`say what to do: ${area} ${names.join('|')}`);
  const verb = Object.hasOwn(verbs, word) ? verbs[word] : undefined;
  if (verb === undefined) {
    const shown = /^[\w-]{1,40}$/.test(word) ? ` ${word}${didYouMean(word, names)}` : ' like that';
    throw new UsageError(`${area} has no verb${shown}`);
  }
  if (extra !== undefined) {
    throw new UsageError(`${area} ${word} takes no more words; give values with options`);
  }
  const locks = area === 'locks' ? ['redis'] : [];
  const known = [...common, ...locks, ...verb.options, ...(verb.acts ? acting : [])];
  const foreign = Object.keys(values).find((option) => !known.includes(option));
  if (foreign !== undefined) throw new UsageError(`${area} ${word} has no option --${foreign}`);
  const required = [...verb.required, ...(verb.acts ? ['reason'] : [])];
  const missing = required.find((option) => !values[option]);
  if (missing !== undefined) throw new UsageError(`${area} ${word} needs --${missing}`);
  const text = (option: string): string => String(values[option] ?? '');
  return {
    name: 'admin',
    area: area === 'sagas' ? 'staged' : (area as AdminCommand['area']),
    verb: word,
    acts: verb.acts,
    ...addresses(values, env),
    id: { operation: text('operation'), scope: text('scope') || globalScope, key: text('key') },
    lockName: text('name'),
    filter: filterOf(values),
    payload: values['payload'] === true,
    step: text('step'),
    happened: word === 'resolve' ? happenedOf(values) : { happened: false },
    reason: text('reason'),
    actor: text('actor') || userInfo().username,
    yes: values['yes'] === true,
    json: values['json'] === true,
  };
}

const schemes: Readonly<Record<string, RegExp>> = {
  pg: /^postgres(ql)?:\/\/./,
  mysql: /^(mysql|mariadb):\/\/./,
  redis: /^rediss?:\/\/./,
};

function addresses(
  values: Values,
  env: NodeJS.ProcessEnv,
): Pick<AdminCommand, 'databaseUrl' | 'redisUrl'> {
  for (const [option, scheme] of Object.entries(schemes)) {
    const url = values[option];
    if (url !== undefined && !scheme.test(String(url))) {
      throw new UsageError(
        `--${option} must be an address like ${option === 'pg' ? 'postgres' : option}://…`,
      );
    }
  }
  if (values['pg'] !== undefined && values['mysql'] !== undefined) {
    throw new UsageError('give one of --pg and --mysql');
  }
  const url = values['pg'] ?? values['mysql'] ?? env['DATABASE_URL'] ?? '';
  if (!/^(postgres(ql)?|mysql|mariadb):\/\/./.test(String(url))) {
    throw new UsageError('no database: give --pg or --mysql, or set DATABASE_URL');
  }
  return { databaseUrl: String(url), redisUrl: values['redis'] as string | undefined };
}

/** Lists have filters; the cursor and times go by other names inside. */
function filterOf(values: Values): Readonly<Record<string, string | number>> {
  const filter: Record<string, string | number> = {};
  for (const name of ['operation', 'scope', 'key', 'state', 'actor']) {
    if (values[name] !== undefined) filter[name] = String(values[name]);
  }
  if (values['cursor'] !== undefined) filter['after'] = String(values['cursor']);
  if (values['limit'] !== undefined) filter['limit'] = wholeNumber(String(values['limit']));
  if (values['since'] !== undefined) filter['sinceMs'] = timeOf('since', String(values['since']));
  if (values['before'] !== undefined)
    filter['beforeMs'] = timeOf('before', String(values['before']));
  return filter;
}

function wholeNumber(text: string): number {
  if (/^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= 1_000) return Number(text);
  throw new UsageError('--limit must be a whole number from 1 to 1000');
}

function timeOf(option: string, text: string): number {
  const timeMs = Date.parse(text);
  // With a zone: a time that means another moment on another machine is a trap.
  if (!Number.isNaN(timeMs) && /(Z|[+-]\d\d:?\d\d)$/.test(text)) return timeMs;
  throw new UsageError(`--${option} must be a time with its zone, like 2026-11-29T10:00:00Z`);
}

function happenedOf(values: Values): AdminCommand['happened'] {
  const { happened, 'not-happened': notHappened } = values;
  if ((happened === undefined) === (notHappened === undefined)) {
    throw new UsageError('staged resolve needs one of --happened <json> and --not-happened');
  }
  if (happened === undefined) return { happened: false };
  try {
    return { happened: true, result: JSON.parse(String(happened)) };
  } catch {
    throw new UsageError('--happened must be JSON: the result the step would have returned');
  }
}
