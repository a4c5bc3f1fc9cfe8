/** What only RabbitMQ can do to its users. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { amqpPublisher, consumeAmqp } from '../../src/brokers/amqp/index.ts';
import type { Inbox, Message } from '../../src/message/index.ts';
import { door } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { amqpKind, openAmqp } from './amqp-kind.ts';
import { missing } from './broker-laws.ts';

const message: Message = {
  id: 'm1',
  topic: 'nobody-listens',
  key: undefined,
  sequence: undefined,
  payload: '{}',
  headers: {},
  createdMs: 1_700_000_000_000,
};

const noInbox: Inbox<unknown> = {
  consume: () => Promise.reject(new Error('the database is away')),
  claim: () => Promise.resolve(false),
  purge: () => Promise.resolve(0),
};

describe.skipIf(missing(amqpKind))('RabbitMQ', () => {
  beforeAll(() => amqpKind.start());
  afterAll(() => amqpKind.stop());

  it('refuses a message that no queue takes, and takes it when one does', async () => {
    const model = await openAmqp();
    const channel = await model.createConfirmChannel();
    const publisher = amqpPublisher(channel, { exchange: '' });
    await expect(publisher.publish(message)).rejects.toThrow('no queue takes');
    await channel.assertQueue(message.topic);
    await publisher.publish(message);
    await expect(publisher.publish({ ...message, topic: 'other' })).rejects.toThrow('no queue');
    expect((await channel.checkQueue(message.topic)).messageCount).toBe(1);
    await model.close();
  });

  it('refuses a channel that does not confirm, and fails what a lost channel left open', async () => {
    const model = await openAmqp();
    const plain = await model.createChannel();
    expect(() => amqpPublisher(plain as never, { exchange: '' })).toThrow('confirm channel');
    const channel = await model.createConfirmChannel();
    await channel.assertQueue('lossy');
    const publisher = amqpPublisher(channel, {
      exchange: '',
      routingKey: () => 'lossy',
      confirmMs: 500,
    });
    const open = publisher.publish(message);
    (
      model as unknown as { connection: { stream: { destroy(): void } } }
    ).connection.stream.destroy();
    await expect(open).rejects.toThrow();
    await expect(publisher.publish(message)).rejects.toThrow();
  });

  it('tells a deleted queue and a closed channel; a failed effect goes back, not away', async () => {
    const model = await openAmqp();
    const channel = await model.createConfirmChannel();
    await channel.assertQueue('gone');
    const tried = door();
    const failing: Inbox<unknown> = {
      ...noInbox,
      consume() {
        tried.open();
        return Promise.reject(new Error('the database is away'));
      },
    };
    channel.sendToQueue('gone', Buffer.from('{}'), { messageId: 'x1' });
    const first = await consumeAmqp(await model.createChannel(), 'gone', failing, async () => {}, {
      backoffCapMs: 20,
    });
    await tried.opened;
    await first.stop();
    expect(await first.ended).toEqual({ kind: 'stopped' });
    expect((await channel.checkQueue('gone')).messageCount).toBe(1);
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const aborted = await consumeAmqp(
      await model.createChannel(),
      'gone',
      failing,
      async () => {},
      options,
    );
    controller.abort();
    expect(await aborted.ended).toEqual({ kind: 'stopped' });
    const second = await consumeAmqp(await model.createChannel(), 'gone', failing, async () => {});
    await channel.deleteQueue('gone');
    expect(await second.ended).toMatchObject({ kind: 'lost' });
    await channel.assertQueue('again');
    const own = await model.createChannel();
    const third = await consumeAmqp(own, 'again', failing, async () => {});
    await own.close();
    expect(await third.ended).toMatchObject({ kind: 'lost' });
    await third.stop();
    await model.close();
  });

  it('checks options before any I/O', async () => {
    const channel = {} as never;
    const consume = (options: object): Promise<unknown> =>
      consumeAmqp(channel, 'q', noInbox, async () => {}, options);
    await rejection(consume({ prefetch: 0 }), 'OPTION_INVALID');
    await rejection(consume({ prefech: 1 }), 'OPTION_INVALID');
    await rejection(consume({ source: 'ä' }), 'OPTION_INVALID');
  });
});
