/** NATS JetStream keeps the broker laws. */

import { brokerLaws } from './broker-laws.ts';
import { natsKind } from './nats-kind.ts';

brokerLaws(natsKind);
