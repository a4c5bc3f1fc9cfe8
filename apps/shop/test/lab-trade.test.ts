/** The lab's scenarios of the trade: the right way comes through each, and every mistake is caught. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { startScenarioNodes } from '../dist/lab/fleets.js';
import { type Contest, mismatchOf } from '../src/lab/contest.ts';
import { parseOptions, UsageError } from '../src/lab/options.ts';
import { htmlReport } from '../src/lab/report/html.ts';
import { tableReport } from '../src/lab/report/table.ts';
import { scenarios } from '../src/lab/scenarios.ts';
import { tradeScenarios } from '../src/lab/trade/index.ts';

const entry = fileURLToPath(new URL('../dist/lab/main.js', import.meta.url));
const postgresUrl = inject('postgresUrl');

const contestOf = (contender: string): Contest => ({ scenario: 'coupon-race', contender });

describe('scenarios', () => {
  it.each(Object.entries(scenarios))(
    '%s has one right way, and mistakes about its laws',
    (_, scenario) => {
      const contenders = Object.entries(scenario.contenders);
      const right = contenders.filter(([, { breaks }]) => breaks.length === 0);
      expect(right.map(([id]) => id)).toEqual(['turngate']);
      expect(contenders.length).toBeGreaterThan(1);
      const broken = contenders.flatMap(([, { breaks }]) => breaks);
      expect(Object.keys(scenario.laws)).toEqual(expect.arrayContaining(broken));
    },
  );
});

it('has the same mistakes in the docs', async () => {
  const page = await readFile(new URL('../../../docs/lab.md', import.meta.url), 'utf8');
  const rows = page.split('\n').filter((line) => /^\| +(`|\|)/.test(line));
  const told = rows.map((row) => row.split('|').map((cell) => cell.trim().replaceAll('`', '')));
  const mistakes = Object.entries(scenarios).flatMap(([id, { laws, contenders }]) =>
    Object.entries(contenders)
      .filter(([, { breaks }]) => breaks.length > 0)
      .map(([name, { breaks }], i) => {
        return [i === 0 ? id : '', name, breaks.map((law) => laws[law]?.many).join(', ')];
      }),
  );
  expect(told.map(([, id, name, , breaks]) => [id, name, breaks])).toEqual(mistakes);
});

describe('verdict of a contest', () => {
  const none = { overTotal: 0, overUser: 0, left: 0 };
  const verdict = (contender: string, breaches: object, shopAudit = {}) =>
    mismatchOf({ breaches: { ...none, ...breaches }, shopAudit }, contestOf(contender));

  it('wants the right one clean, in the eyes of the shop’s own audit too', () => {
    expect(verdict('turngate', {})).toBeUndefined();
    expect(verdict('turngate', { left: 2 })).toContain('2 coupons withheld');
    expect(verdict('turngate', {}, { COUPON_OVERUSED: 1 })).toContain('COUPON_OVERUSED');
  });

  it('wants to see a mistake break each of its laws', () => {
    expect(verdict('check-then-insert', { overTotal: 1, overUser: 1 })).toBeUndefined();
    expect(verdict('check-then-insert', { overTotal: 1 })).toContain('coupons over the limit');
    expect(verdict('total-only', {})).toContain('no breach');
  });
});

describe('choosing', () => {
  it('takes storms of the payment and of the trade by one option', () => {
    const options = parseOptions(['--storm', 'refund-race,double-click']);
    expect(options?.storms).toEqual(['double-click']);
    const contenders = options?.contests.map(({ contender }) => contender);
    expect(contenders).toEqual(Object.keys(scenarios['refund-race']?.contenders ?? {}));
  });

  it('takes ways by name everywhere, and refuses a choice of nothing', () => {
    const options = parseOptions(['--only', 'turngate']);
    expect(options?.contests).toHaveLength(Object.keys(scenarios).length);
    expect(options?.implementations).toEqual(['turngate']);
    const nothing = ['--storm', 'refund-race', '--only', 'no-guard'];
    expect(() => parseOptions(nothing)).toThrow(UsageError);
  });
});

describe('reports', () => {
  const contest = { ...contestOf('total-only'), durationMs: 1 };
  const findings = { breaches: { overTotal: 0, overUser: 3, left: 0 }, shopAudit: {} };
  const result = (mismatch: string | undefined) => ({
    plan: { implementations: [], storms: [], contests: [contest], quick: true, seed: 7 },
    cells: [],
    contests: [{ ...contest, findings, mismatch }],
    startedAt: new Date(0),
    durationMs: 1,
    nodeVersion: '20',
    postgresVersion: '18',
  });

  it('say which law was broken how often, and under which seed', () => {
    const table = tableReport(result(undefined));
    expect(table).toMatch(/^coupon race$/m);
    expect(table).toMatch(/^ {2}only the total guarded {2}3 coupons over the limit$/m);
    expect(table).toContain('1 of 1 cells are as the theory says (0.0 s; quick, seed 7;');
    expect(htmlReport(result(undefined))).toContain('<b>3 coupons over the limit</b>');
  });

  it('show what is not as the theory says', () => {
    const bad = result('<b>odd</b>');
    expect(tableReport(bad)).toContain('NOT AS THEORY  total-only × coupon-race: <b>odd</b>');
    expect(htmlReport(bad)).toContain('&lt;b&gt;odd&lt;/b&gt;');
  });
});

it('leaves no process behind when a node is killed by two at once', async () => {
  const processes = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length;
  const before = processes();
  const nodes = startScenarioNodes({ url: 'postgres://127.0.0.1:1/none', schema: 'none' }, 1);
  await nodes.ready();
  await Promise.all([nodes.killAndReplace(0), nodes.killAndReplace(nodes.count)]);
  await nodes.ready();
  await nodes.stop();
  await expect.poll(processes, { timeout: 20_000 }).toBe(before);
}, 60_000);

interface ContestReport extends Contest {
  readonly mismatch: string | null;
  readonly breaches: Record<string, number> | null;
  readonly shopAudit: Record<string, number> | null;
}

// Half a minute on a quiet machine; other test files may load both cores.
const runLimitMs = 240_000;

describe.skipIf(postgresUrl === '')('npm run lab, the trade', () => {
  const ids = Object.keys(tradeScenarios);
  let folder: string;
  let contests: ContestReport[];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'turngate-lab-trade-'));
    const [json, html] = [join(folder, 'lab.json'), join(folder, 'lab.html')];
    const files = ['--json', json, '--html', html];
    await runLab(['--quick', '--storm', ids.join(), ...files]);
    contests = JSON.parse(await readFile(json, 'utf8')).contests;
  }, runLimitMs);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each(ids)('%s: the right one is clean, every mistake is caught', (id) => {
    const played = contests.filter(({ scenario }) => scenario === id);
    const contenders = Object.entries(scenarios[id]?.contenders ?? {});
    expect(played.map(({ contender }) => contender)).toEqual(contenders.map(([name]) => name));
    for (const { contender, breaches, shopAudit, mismatch } of played) {
      const breaks = scenarios[id]?.contenders[contender]?.breaks ?? [];
      const broken = Object.keys(breaches ?? {}).filter((law) => breaches?.[law] !== 0);
      expect({ contender, mismatch }).toEqual({ contender, mismatch: null });
      if (breaks.length === 0) expect({ broken, shopAudit }).toEqual({ broken: [], shopAudit: {} });
      else expect(broken).toEqual(expect.arrayContaining([...breaks]));
    }
  });
});

/** Rejects when the lab could not run; a cell that is not as the theory says is for the tests to see. */
async function runLab(args: readonly string[]): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const env = { ...process.env, DATABASE_URL: postgresUrl };
    execFile(process.execPath, [entry, ...args], { env }, (error, _stdout, stderr) => {
      if (error === null || error.code === 1) resolve();
      else reject(new Error(`the lab ended with ${error.code}: ${stderr}`));
    });
  });
}
