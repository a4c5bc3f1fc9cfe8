/** What may be said after `records`, `staged`, `locks` and `audit`: one table for parser and help. */

/** One verb. */
export interface AdminVerb {
  /** Options it takes besides the address, `--json` and what acts need. */
  readonly options: readonly string[];
  readonly required: readonly string[];
  /** Does it change anything? It then needs --reason, and a yes. */
  readonly acts: boolean;
}

const identity = ['operation', 'scope', 'key'];
const look = (options: readonly string[], required: readonly string[] = []): AdminVerb => ({
  options,
  required,
  acts: false,
});
const act = (options: readonly string[], required: readonly string[] = options): AdminVerb => ({
  options,
  required,
  acts: true,
});
const needed = ['operation', 'key'];

const staged = {
  list: look(['operation', 'scope', 'state', 'limit', 'cursor']),
  inspect: look([...identity, 'payload'], needed),
  resume: act(identity, needed),
  release: act(identity, needed),
  resolve: act([...identity, 'step', 'happened', 'not-happened'], [...needed, 'step']),
  park: act(identity, needed),
};

/** Areas and their verbs. */
export const adminVerbs: Readonly<Record<string, Readonly<Record<string, AdminVerb>>>> = {
  records: {
    list: look([...identity, 'state', 'since', 'before', 'limit', 'cursor']),
    inspect: look([...identity, 'payload'], needed),
    release: act(identity, needed),
    purge: act([]),
  },
  staged,
  /** Sagas are staged operations. */
  sagas: staged,
  locks: { inspect: look(['name'], ['name']), release: act(['name']) },
  audit: { list: look(['operation', 'key', 'actor', 'limit', 'cursor']) },
};

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

/** The options of these verbs, for the parser. */
export const adminOptions = {
  pg: text,
  mysql: text,
  redis: text,
  operation: text,
  scope: text,
  key: text,
  name: text,
  state: text,
  since: text,
  before: text,
  limit: text,
  cursor: text,
  step: text,
  happened: text,
  reason: text,
  actor: text,
  'not-happened': flag,
  payload: flag,
  yes: flag,
} as const;

/** For `--help`. */
export const adminUsage = `  turngate records list|inspect|release|purge
  turngate staged  list|inspect|resume|release|resolve|park   (also: turngate sagas …)
  turngate locks   inspect|release
  turngate audit   list
      Looks at what is stored and corrects it; each change is written to the audit log.
      --pg <url>, --mysql <url>   the database (default: DATABASE_URL); --redis <url> for locks
                                  in Redis, whose audit lines go to the database
      --operation, --scope, --key the identity; --scope is "-" when left out of a verb on one key
      --name <lock>               the name of a lock
      --state, --since, --before, --limit, --cursor
                                  filters of lists; times as 2026-11-29T10:00:00Z
      --step <name> --happened <json> | --not-happened
                                  what became of a step of unknown outcome
      --payload                   show inputs and results: they are business data
      --reason <text>             why; needed for every change
      --actor <name>              who; default: the user of the system
      --yes                       do it without asking
      --json                      JSON instead of a table`;
