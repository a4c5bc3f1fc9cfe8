/** The embedded PostgreSQL, kept running: if the server dies, it is started again on its port. */
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@turngate/embedded-postgres';

/** A database server that this process owns. */
export interface OwnedDatabase {
  readonly url: string;
  stop(): Promise<void>;
}

const restartPauseMs = 500;

/** Starts it in `dataDir`; `say` hears what happens in plain words. */
export async function startOwnedDatabase(
  dataDir: string,
  say: (line: string) => void,
): Promise<OwnedDatabase> {
  let server = await startEmbeddedPostgres({ dataDir });
  let stopping = false;
  const { url, port } = server;

  const keepRunning = async (current: EmbeddedPostgres): Promise<void> => {
    await current.exited;
    while (!stopping) {
      say('PostgreSQL ended unexpectedly; starting it again');
      try {
        server = await startEmbeddedPostgres({ dataDir, port });
        say('PostgreSQL is back');
        void keepRunning(server);
        return;
      } catch (error) {
        say(`PostgreSQL did not start: ${(error as Error).message}`);
        await new Promise((resolve) => setTimeout(resolve, restartPauseMs));
      }
    }
  };
  void keepRunning(server);

  return {
    url,
    async stop() {
      stopping = true;
      await server.stop();
    },
  };
}
