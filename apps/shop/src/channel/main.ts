/** The channel as a process of its own: started by the shop, or by hand. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ChannelBook } from './book.ts';
import { Notifier } from './notifier.ts';
import { channelServer } from './server.ts';

const dataDir = process.env['CHANNEL_DATA_DIR'] || '.turngate';
const secret = process.env['CHANNEL_SECRET'] || 'development-only';
const notifyUrl =
  process.env['CHANNEL_NOTIFY_URL'] || 'http://127.0.0.1:3000/api/callbacks/payment';

mkdirSync(dataDir, { recursive: true });
const book = new ChannelBook(join(dataDir, 'channel.jsonl'));
const notifier = new Notifier(notifyUrl, secret);
const app = channelServer(book, notifier, secret);
const port = Number(process.env['CHANNEL_PORT'] || 0);
const url = await app.listen({ host: '127.0.0.1', port });
process.send?.({ url });
process.stderr.write(`channel: listens at ${url}; tells ${notifyUrl}\n`);

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  notifier.stop();
  await app.close();
  book.close();
  process.exit(0);
}
process.on('SIGINT', () => void stop());
process.on('SIGTERM', () => void stop());
process.on('disconnect', () => void stop()); // The shop that started it is gone.
