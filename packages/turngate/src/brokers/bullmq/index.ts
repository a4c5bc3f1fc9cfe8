/** BullMQ: a publisher for the relay, a processor for a `Worker`. */

export type { BullmqJob, BullmqQueue } from './client.ts';
export { type BullmqProcessorOptions, bullmqProcessor } from './processor.ts';
export { type BullmqPublisherOptions, bullmqPublisher } from './publisher.ts';
