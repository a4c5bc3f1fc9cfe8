/** The `turngate` command as users run it: a child process on the compiled package. */
import { type ExecFileException, execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { errorTable } from '../src/core/errors.ts';
import { migrations } from '../src/stores/postgres/migrations.generated.ts';
import { serverUrl } from './support/postgres.ts';

const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const library = fileURLToPath(new URL('..', import.meta.url));
const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function turngate(args: string[], at: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
  const { DATABASE_URL: _, ...rest } = process.env;
  const options = { cwd: at.cwd ?? library, env: { ...rest, ...at.env } };
  return new Promise<Run>((resolve) => {
    execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number((error as ExecFileException).code);
      resolve({ code, stdout, stderr });
    });
  });
}

/** A project that has these packages installed and no others. */
function project(...packages: string[]): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'turngate-cli-')));
  folders.push(folder);
  mkdirSync(join(folder, 'node_modules'));
  const require = createRequire(import.meta.url);
  for (const name of packages) {
    const inside = join('node_modules', name);
    const entry = require.resolve(name);
    symlinkSync(entry.slice(0, entry.lastIndexOf(inside)) + inside, join(folder, inside));
  }
  return folder;
}

describe('turngate --help, --version, explain', () => {
  it('prints help and version on stdout', async () => {
    const help = await turngate(['--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('turngate migrate');
    expect(await turngate(['--version'])).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
  });

  it('explains a code with everything the table says', async () => {
    const { outcome, httpStatus, advice } = errorTable.BUSY;
    for (const spelling of ['BUSY', 'busy']) {
      const { code, stdout } = await turngate(['explain', spelling]);
      expect(code).toBe(0);
      expect(stdout).toBe(
        `BUSY\noutcome: ${outcome}\nHTTP status: ${httpStatus}\nadvice: ${advice}\n`,
      );
    }
  });
});

describe('turngate with wrong usage', () => {
  const cases: [string, string[], string][] = [
    ['nothing', [], 'say what to do: migrate or explain'],
    ['an unknown command', ['migrat'], 'did you mean migrate?'],
    ['an unknown option', ['migrate', '--ulr', 'x'], 'did you mean --url?'],
    ['an option of another command', ['explain', 'BUSY', '--json'], 'explain has no option --json'],
    ['an unknown code', ['explain', 'LOCK_LOTS'], 'did you mean LOCK_LOST?'],
    ['no code', ['explain'], 'explain needs one error code'],
    ['no database', ['migrate'], 'give --url, or set DATABASE_URL'],
    ['another database', ['migrate', '--url', 'oracle://u:sesame@h/d'], 'must start with postgres'],
    ['a url in the wrong place', ['migrate', 'postgres://u:sesame@h/d'], 'with --url'],
    ['a url as the command', ['postgres://u:sesame@h/d'], 'must be a command'],
  ];
  for (const [name, args, message] of cases) {
    it(`refuses ${name} with exit code 2 and nothing on stdout`, async () => {
      const { code, stdout, stderr } = await turngate(args);
      expect(code).toBe(2);
      expect(stdout).toBe('');
      expect(stderr).toContain(message);
      expect(stderr).not.toContain('sesame');
    });
  }
});

describe('turngate migrate without a database', () => {
  it('says which drivers it looked for when the project has none', async () => {
    const url = 'postgres://u:sesame@127.0.0.1:1/d';
    const { code, stderr } = await turngate(['migrate', '--url', url], { cwd: project() });
    expect(code).toBe(1);
    expect(stderr).toContain('npm install pg or postgres');
  });

  for (const driver of ['pg', 'postgres']) {
    it(`fails with code 1 and without the password through ${driver}`, async () => {
      const url = 'postgres://u:open%20sesame@127.0.0.1:1/d';
      const run = await turngate(['migrate', '--url', url], { cwd: project(driver) });
      expect(run).toMatchObject({ code: 1, stdout: '' });
      expect(run.stderr).toContain('STORE_UNAVAILABLE');
      expect(run.stderr).not.toContain('sesame');
    });
  }
});

describe.skipIf(serverUrl === '')('turngate migrate', () => {
  for (const driver of ['pg', 'postgres']) {
    it(`creates the tables once, in the search_path of the url, through ${driver}`, async () => {
      const schema = `cli_${randomBytes(6).toString('hex')}`;
      const admin = new pg.Client({ connectionString: serverUrl });
      await admin.connect();
      await admin.query(`CREATE SCHEMA ${schema}`);
      try {
        const url = new URL(serverUrl);
        url.searchParams.set('options', `-c search_path=${schema}`);
        const cwd = project(driver);
        // URLSearchParams writes a space as +, which drivers do not read as one.
        const href = url.href.replaceAll('+', '%20');
        const first = await turngate(['migrate', '--url', href], { cwd });
        const names = migrations.map(({ name }) => name).join(', ');
        expect(first).toEqual({
          code: 0,
          stdout: `applied ${names}; the schema is at version ${migrations.length}\n`,
          stderr: '',
        });
        const env = { DATABASE_URL: href };
        const again = await turngate(['migrate', '--json'], { cwd, env });
        expect(again).toMatchObject({ code: 0, stderr: '' });
        expect(JSON.parse(again.stdout)).toEqual({ applied: [], version: migrations.length });
        const { rows } = await admin.query(
          'SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1',
          [schema],
        );
        const tables = rows.map((row) => row.tablename);
        expect(tables.every((name) => name.startsWith('turngate_'))).toBe(true);
        const some = [
          'turngate_lock',
          'turngate_migration',
          'turngate_record',
          'turngate_transition',
        ];
        expect(tables).toEqual(expect.arrayContaining(some));
      } finally {
        await admin.query(`DROP SCHEMA ${schema} CASCADE`);
        await admin.end();
      }
    });
  }

  it('hides a refused password', async () => {
    const url = new URL(serverUrl);
    url.username = 'nobody';
    url.password = 'open sesame';
    const run = await turngate(['migrate', '--url', url.href], { cwd: project('pg') });
    expect(run).toMatchObject({ code: 1, stdout: '' });
    expect(run.stderr).not.toContain('sesame');
  });
});
