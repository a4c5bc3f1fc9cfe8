/** kill -9 at random moments: no effect twice, none lost, no key stuck past its lease. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase as createMariadb } from '../mysql/support.ts';
import { freshPrefix } from '../redis/support.ts';
import { createDatabase } from '../support/postgres.ts';
import { describeWith, serverUrl } from '../support/servers.ts';
import { auditEffects, auditProvider, codesOf, tokensOf } from './audit.ts';
import { type KillRun, killForAWhile, killMs, leaseMs } from './conductor.ts';

/**
 * What nobody may be told while others die. Lost leases and unreachable databases are told on a starved
 * machine, also by the database of the handler itself, and then the same key must answer later.
 */
const codesOfAStuckKey = [
  'REQUEST_IN_PROGRESS',
  'OPERATION_PARKED',
  'IDEMPOTENCY_KEY_REUSED',
  'STEP_DIVERGED',
  'RESULT_NOT_KEPT',
];

function theLaws(start: () => Promise<KillRun>): void {
  let run: KillRun;
  beforeAll(async () => {
    run = await start();
  }, killMs + 900_000);

  it('the run shows something: kills, repeats, and effects nobody was told of', () => {
    const { kills, told, settled, linesAfterKills } = run;
    const answered = told.filter(({ code }) => code === undefined);
    const knownKeys = new Set(answered.map(({ call, key }) => `${call}|${key}`));
    const unknown = [...tokensOf(linesAfterKills).keys()].filter((name) => !knownKeys.has(name));
    const figures = {
      kills,
      answers: answered.length,
      repeats: answered.filter(({ replayed }) => replayed).length,
      keys: knownKeys.size,
      'effects nobody was told of': unknown.length,
      'called again': settled.length,
      'longest call, ms': Math.max(...told.map(({ ms }) => ms)),
      'longest call after the last kill, ms': Math.max(...settled.map(({ ms }) => ms)),
      codes: codesOf([...told, ...settled]),
    };
    process.stderr.write(`kills: ${JSON.stringify(figures)}\n`);
    expect(kills).toBeGreaterThan(4);
    expect(settled.some(({ replayed }) => replayed)).toBe(true);
  });

  it('every acknowledged effect is there, and none twice', () => {
    const { told, settled, lines, provider } = run;
    expect(auditEffects([...told, ...settled], lines)).toEqual([]);
    expect(auditProvider(provider.effects, lines)).toEqual([]);
  });

  it('what was done before is answered as a repeat, and stays as it was', () => {
    const after = tokensOf(run.lines);
    for (const [name, tokens] of tokensOf(run.linesAfterKills)) {
      expect([name, after.get(name)]).toEqual([name, tokens]);
    }
  });

  it('every key answers again: none is stuck past its lease', () => {
    const { told, settled } = run;
    const answered = new Set(
      settled.filter(({ code }) => code === undefined).map(({ call, key }) => `${call}|${key}`),
    );
    const asked = [...told, ...settled].map(({ call, key }) => `${call}|${key}`);
    expect(asked.filter((name) => !answered.has(name))).toEqual([]);
    const codes = Object.keys(codesOf([...told, ...settled]));
    expect(codes.filter((code) => codesOfAStuckKey.includes(code))).toEqual([]);
  });
}

describe('kill -9 at random moments', { concurrent: false }, () => {
  const drops: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const drop of drops) await drop();
  });

  describeWith('postgres', 'PostgreSQL', () => {
    theLaws(async () => {
      const { url, lines, drop } = await createDatabase();
      drops.push(drop);
      return await killForAWhile({ kind: 'postgres', url }, () => lines(''));
    });
  });

  describeWith('mariadb', 'MariaDB', () => {
    theLaws(async () => {
      const { url, lines, drop } = await createMariadb();
      drops.push(drop);
      return await killForAWhile({ kind: 'mariadb', url }, () => lines(''));
    });
  });

  describeWith(['redis', 'postgres'], 'Redis with a guard in PostgreSQL', () => {
    theLaws(async () => {
      const { url, admin, lines, drop } = await createDatabase();
      drops.push(drop);
      await admin.query('CREATE TABLE paid (pay_key text CONSTRAINT paid_once PRIMARY KEY)');
      await admin.query('CREATE INDEX effect_line ON effect (line text_pattern_ops)');
      const store = {
        kind: 'redis',
        url,
        redisUrl: serverUrl('redis'),
        prefix: freshPrefix(),
        leaseMs,
      };
      return await killForAWhile(store, () => lines(''));
    });
  });
});
