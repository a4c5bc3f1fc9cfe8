declare module 'node-zookeeper-client' {
  type Slice = import('../../src/stores/zookeeper/client.ts').ZookeeperClientLike;

  export interface Client extends Slice {
    getSessionId(): Buffer;
    getSessionPassword(): Buffer;
    once(event: 'connected' | 'disconnected' | 'expired', listener: () => void): unknown;
  }

  export function createClient(
    url: string,
    options?: {
      sessionTimeout?: number;
      spinDelay?: number;
      retries?: number;
      sessionId?: Uint8Array;
      sessionPassword?: Uint8Array;
    },
  ): Client;
}
