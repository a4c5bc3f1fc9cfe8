import type { ServerNode, TestServer } from './test-server.ts';

/** Servers that belong together. */
export interface TestServerGroup extends AsyncDisposable {
  readonly nodes: readonly TestServer[];
  /** The addresses of all nodes, as the clients of this server write them. */
  readonly url: string;
  /** Stops all and removes their data. */
  stop(): Promise<void>;
}

export function groupOf(nodes: readonly ServerNode[], url: string): TestServerGroup {
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())));
  return { nodes, url, stop, [Symbol.asyncDispose]: stop };
}
