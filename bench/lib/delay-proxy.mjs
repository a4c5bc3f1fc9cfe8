// A TCP proxy that adds a delay each way, so that round trips cost what they cost on a network.
// It runs in a thread of its own: on the measured event loop it would charge every trip with CPU.
import { once } from 'node:events';
import net from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** Starts it in front of a port of 127.0.0.1; returns its own port and how to stop it. */
export async function startDelayProxy({ targetPort, eachWayMs }) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { targetPort, eachWayMs } });
  const [port] = await once(worker, 'message');
  return { port, stop: () => worker.terminate() };
}

function serve({ targetPort, eachWayMs }) {
  const server = net.createServer((client) => {
    const target = net.connect(targetPort, '127.0.0.1');
    forward(client, target, eachWayMs);
    forward(target, client, eachWayMs);
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
}

// Timers of one length fire in the order they were set, so chunks keep their order.
function forward(from, to, delayMs) {
  from.setNoDelay(true);
  from.on('data', (chunk) => setTimeout(() => to.writable && to.write(chunk), delayMs));
  from.on('close', () => setTimeout(() => to.destroy(), delayMs));
  from.on('error', () => {}); // 'close' follows and ends the other side.
}

if (!isMainThread) serve(workerData);
