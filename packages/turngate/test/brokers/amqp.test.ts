/** RabbitMQ keeps the broker laws. */
import { amqpKind } from './amqp-kind.ts';
import { brokerLaws } from './broker-laws.ts';

brokerLaws(amqpKind);
