import { type AddressInfo, createServer, type Server } from 'node:net';

/**
 * Different ports of 127.0.0.1 that were free a moment ago. Somebody may take one before it is
 * bound, so the start of a server that finds its port taken is tried again.
 */
export async function findFreePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  // All are held until all are known: a port that is given back is often handed out again.
  try {
    return await Promise.all(servers.map(listen));
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: '127.0.0.1', port: 0, exclusive: true }, () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}
