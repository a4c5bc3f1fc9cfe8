// The PostgreSQL the benchmark runs on: its own, with durable settings, gone afterwards.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '@turngate/embedded-postgres';

/** fsync, synchronous_commit and full_page_writes stay on; only sizes are set. */
export const SETTINGS = {
  shared_buffers: '512MB',
  max_connections: '200',
  max_wal_size: '4GB',
};

/** Starts a throw-away server; `stop` ends it and removes its directory. */
export async function startPostgres() {
  const dataDir = await mkdtemp(join(tmpdir(), 'turngate-bench-'));
  const remove = () => rm(dataDir, { recursive: true, force: true, maxRetries: 10 });
  try {
    // Only initdb's own flush is skipped; the server itself syncs every commit.
    const server = await startEmbeddedPostgres({ dataDir, initNoSync: true, settings: SETTINGS });
    return {
      url: server.url,
      port: server.port,
      async stop() {
        await server.stop('immediate');
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The same address through another port. */
export function throughPort(url, port) {
  const changed = new URL(url);
  changed.port = String(port);
  return changed.href;
}
