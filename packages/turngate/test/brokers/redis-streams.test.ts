/** Redis Streams keep the broker laws, over both clients. */
import { brokerLaws } from './broker-laws.ts';
import { redisStreamKinds } from './redis-kinds.ts';

for (const kind of redisStreamKinds) brokerLaws(kind);
