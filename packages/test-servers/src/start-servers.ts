import { findFreePorts } from './free-ports.ts';
import { temporaryDir } from './temporary-dir.ts';
import { type Place, type Recipe, ServerNode } from './test-server.ts';
import { TestServerError } from './test-server-error.ts';

/** What it takes to start one or several servers that belong together. */
export interface Plan {
  /** Names the directories; short. */
  readonly name: string;
  readonly nodes: number;
  readonly portsPerNode: number;
  readonly startTimeoutMs: number;
  /** Writes the files of one node and says how it is run; it knows where all others are. */
  prepare(place: Place, places: readonly Place[]): Recipe | Promise<Recipe>;
}

const ATTEMPTS_MAX = 5;
const PORT_TAKEN = /address already in use|eaddrinuse|bind.*in use/i;

/**
 * Starts all servers of a plan and resolves when each is ready. When one fails, all are stopped
 * and nothing is left; a port that somebody else took meanwhile leads to another attempt.
 *
 * @throws TestServerError
 */
export async function startServers(plan: Plan): Promise<ServerNode[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(plan);
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !isPortTaken(error)) throw error;
    }
  }
}

/** @throws TestServerError */
export async function startServer(plan: Omit<Plan, 'nodes'>): Promise<ServerNode> {
  const [server] = await startServers({ ...plan, nodes: 1 });
  return server as ServerNode;
}

async function startOnce(plan: Plan): Promise<ServerNode[]> {
  const { nodes: count, portsPerNode } = plan;
  const dirs = await settleAll(
    Array.from({ length: count }, () => temporaryDir(plan.name)),
    (dir) => dir.remove(),
  );
  const undo: (() => Promise<void>)[] = dirs.map((dir) => () => dir.remove());
  try {
    const ports = await findFreePorts(count * portsPerNode);
    const places = dirs.map(({ path: dir }, index): Place => {
      const own = ports.slice(index * portsPerNode, (index + 1) * portsPerNode);
      return { dir, port: own[0] ?? 0, ports: own };
    });
    const recipes = await Promise.all(places.map(async (place) => plan.prepare(place, places)));
    const nodes = dirs.map((dir, index) => {
      const [recipe, place] = [recipes[index] as Recipe, places[index] as Place];
      return new ServerNode(recipe, place, dir, plan.startTimeoutMs);
    });
    undo.splice(0, undo.length, ...nodes.map((node) => () => node.stop()));
    // All run before any is waited for: members of a cluster are not ready alone.
    await settleAll(nodes.map((node) => node.launch()));
    await Promise.all(nodes.map((node) => node.untilReady()));
    return nodes;
  } catch (error) {
    await Promise.all(undo.map((step) => step()));
    throw error;
  }
}

/** Like `Promise.all`, but a failure waits for the others, so that they can be undone. */
async function settleAll<T>(
  promises: readonly Promise<T>[],
  undo: (value: T) => Promise<unknown> = async () => {},
): Promise<T[]> {
  const results = await Promise.allSettled(promises);
  const values = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed === undefined) return values;
  await Promise.all(values.map(undo));
  throw failed.reason;
}

function isPortTaken(error: unknown): boolean {
  return error instanceof TestServerError && PORT_TAKEN.test(error.message);
}
