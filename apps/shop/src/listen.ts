/** Listens on the wanted port, or on the next free one where the port was only a default. */
import type { FastifyInstance } from 'fastify';
import type { ShopConfig } from './config.ts';

const portsTried = 50;

/** @returns the port it listens on; throws EADDRINUSE when a fixed port is taken */
export async function listen(
  app: FastifyInstance,
  { host, port, portFixed }: ShopConfig,
  say: (line: string) => void,
): Promise<number> {
  for (let next = port; ; next++) {
    try {
      await app.listen({ host, port: next });
      const address = app.server.address();
      return typeof address === 'object' && address !== null ? address.port : next;
    } catch (error) {
      const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (!taken || portFixed || next >= port + portsTried) throw error;
      say(`port ${next} is taken, trying ${next + 1}`);
    }
  }
}
