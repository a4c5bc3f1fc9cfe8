// Takes tokens as fast as it can. argv: Redis URL, key, capacity, refillPerSecond, for ms, clock skew
// in ms. Prints how many it got.
import { Redis } from 'ioredis';
import { redisTokenBuckets } from '../../dist/limiter/index.js';

const [url, key, capacity, refillPerSecond, forMs, skewMs] = process.argv.slice(2);
const realNow = Date.now;
Date.now = () => realNow() + Number(skewMs);
const client = new Redis(url);
const buckets = redisTokenBuckets(client);
const options = { capacity: Number(capacity), refillPerSecond: Number(refillPerSecond) };
const endMs = performance.now() + Number(forMs);
let granted = 0;
const worker = async () => {
  while (performance.now() < endMs) if ((await buckets.take(key, options)).allowed) granted++;
};
await Promise.all([worker(), worker(), worker(), worker()]);
console.log(granted);
client.disconnect();
