/** BullMQ keeps the broker laws. */

import { brokerLaws } from './broker-laws.ts';
import { bullmqKind } from './redis-kinds.ts';

brokerLaws(bullmqKind);
