/** Two databases, several shops and a depot: every process can be killed with -9 and comes back. */
import { startEmbeddedPostgres } from '@turngate/embedded-postgres';
import { startMariadb, temporaryDir } from '@turngate/test-servers';
import { until } from './channel.ts';
import { spawnDepot } from './depot.ts';
import { channelSecret, freePort, freshDatabase, spawnShop } from './shop.ts';

/** A process that is killed and started again in the same place. */
export interface Victim {
  readonly name: string;
  kill(): Promise<void>;
  /** Resolves when it answers again, however long what it needs is away. */
  start(): Promise<void>;
}

export interface KillSite {
  readonly shops: readonly string[];
  readonly depot: string;
  /** The shops' PostgreSQL and the depot's MariaDB. */
  readonly databaseUrls: readonly [string, string];
  readonly victims: readonly Victim[];
  stop(): Promise<void>;
}

const restartMaxMs = 120_000;

export async function startKillSite(shopCount: number): Promise<KillSite> {
  const stops: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (let next = stops.pop(); next !== undefined; next = stops.pop()) await next();
  };
  try {
    const money = await startMoneyServer(stops);
    const goods = await startMariadb();
    stops.push(() => goods.stop());
    const databaseUrls = [await freshDatabase(money.url), await freshDatabase(goods.url)] as const;
    const depotPort = await freePort();
    const depot = processVictim('depot', () => spawnDepot(databaseUrls[1], depotPort), stops);
    await depot.start();
    const shops: Victim[] = [];
    const bases: string[] = [];
    for (let i = 0; i < shopCount; i++) {
      const port = String(await freePort());
      const env = {
        DATABASE_URL: databaseUrls[0],
        STOCK_SERVICE_URL: `http://127.0.0.1:${depotPort}`,
        STOCK_SERVICE_SECRET: channelSecret,
        CHANNEL_URL: 'http://127.0.0.1:9',
        PORT: port,
      };
      const shop = processVictim(`shop ${i + 1}`, () => shopProcess(env), stops);
      await shop.start(); // One after another: the first migrates.
      shops.push(shop);
      bases.push(`http://127.0.0.1:${port}`);
    }
    return {
      shops: bases,
      depot: `http://127.0.0.1:${depotPort}`,
      databaseUrls,
      victims: [
        ...shops,
        depot,
        money.victim,
        { name: 'MariaDB', kill: () => goods.kill(), start: () => goods.restart() },
      ],
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Killable {
  kill(): Promise<void>;
}

async function shopProcess(env: Record<string, string>): Promise<Killable> {
  const shop = await spawnShop(env);
  return { kill: () => shop.killGroup() };
}

/** One that needs others to start is started until it stands. */
function processVictim(
  name: string,
  spawn: () => Promise<Killable>,
  stops: (() => Promise<unknown>)[],
): Victim {
  let running: Killable | undefined;
  const kill = async (): Promise<void> => await running?.kill();
  stops.push(kill);
  return {
    name,
    kill,
    async start() {
      await until(async () => {
        running = await spawn();
        return true;
      }, restartMaxMs);
    },
  };
}

async function startMoneyServer(
  stops: (() => Promise<unknown>)[],
): Promise<{ readonly url: string; readonly victim: Victim }> {
  const dir = await temporaryDir('checkout-kills');
  stops.push(() => dir.remove());
  const options = { dataDir: dir.path, initNoSync: true };
  let server = await startEmbeddedPostgres(options);
  stops.push(() => server.stop('immediate'));
  const { url, port } = server;
  const victim = {
    name: 'PostgreSQL',
    async kill() {
      server.kill();
      await server.exited;
    },
    async start() {
      server = await startEmbeddedPostgres({ ...options, port });
    },
  };
  return { url, victim };
}
