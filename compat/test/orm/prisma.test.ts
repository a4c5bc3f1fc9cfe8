// biome-ignore-all lint/suspicious/noExplicitAny: each ORM has generics of its own, which no shared law can name.
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { PrismaPg } from '@prisma/adapter-pg';
import { prismaTx } from 'turngate/orm';
import { ormSuite } from './laws.ts';

const require = createRequire(import.meta.url);
const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const schema = path('./prisma/schema.prisma');
const client = path('../../.turngate/prisma-client/index.js');

ormSuite<any>('Prisma', {
  async postgres({ url }) {
    generate();
    const { PrismaClient } = require(client);
    const adapter = new PrismaPg({ connectionString: url, max: 8 });
    const prisma = new PrismaClient({ adapter });
    return {
      transaction: (body) => prisma.$transaction(body, { maxWait: 20_000, timeout: 20_000 }),
      session: (tx) => prismaTx(tx),
      insert: (tx, line) => tx.effect.create({ data: { line } }),
      outside: prisma,
      close: () => prisma.$disconnect(),
    };
  },
});

/** Without engines: the client compiles its queries itself, and its CLI need not download any. */
function generate(): void {
  if (changedMs(client) > changedMs(schema)) return;
  const cli = require.resolve('prisma/build/index.js');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [cli, 'generate', '--schema', schema],
    {
      cwd: path('../..'),
      encoding: 'utf8',
      // Any program that is there: `generate` looks for it, and does not run it.
      env: {
        ...process.env,
        PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
        CHECKPOINT_DISABLE: '1',
      },
    },
  );
  if (status !== 0) throw new Error(`prisma generate failed: ${stdout}${stderr}`);
}

function changedMs(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
