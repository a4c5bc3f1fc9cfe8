/** What needs no broker: Kafka's wrapper on its pure parts, the wire format, the reading of answers. */
import { describe, expect, it } from 'vitest';
import { bullmqProcessor } from '../../src/brokers/bullmq/index.ts';
import { kafkaEachMessage, kafkaPublisher } from '../../src/brokers/kafka/index.ts';
import { entriesOfClaim, entriesOfRead } from '../../src/brokers/redis-streams/client.ts';
import type { Consumption, Delivery, Inbox, Message } from '../../src/message/index.ts';
import { fromWire, toWire } from '../../src/message/wire.ts';

const message: Message = {
  id: 'm1',
  topic: 'order:paid',
  key: 'o1',
  sequence: 3,
  payload: '{"n":1}',
  headers: { trace: 't1', 'turngate-id': 'forged' },
  createdMs: 1_700_000_000_000,
};

/** An inbox that answers as told and notes what it was asked. */
function scripted(answer: 'run' | Exclude<Consumption<unknown>['kind'], 'applied'>) {
  const asked: Delivery[] = [];
  const inbox: Inbox<unknown> = {
    async consume(delivery, effect) {
      asked.push(delivery);
      if (answer !== 'run') return { kind: answer };
      return { kind: 'applied', value: await effect({} as never, undefined) };
    },
    claim: () => Promise.resolve(true),
    purge: () => Promise.resolve(0),
  };
  return { inbox, asked };
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function record(headers: Record<string, unknown>) {
  const value = bytes(message.payload);
  const inner = { key: bytes('o1'), value, timestamp: '1700000000000', offset: '7', headers };
  return { topic: 'order.paid', partition: 0, message: inner };
}

const asBytes = (headers: Record<string, string>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, bytes(value)]));

describe('the wire format', () => {
  it('comes back as it went, and its own headers cannot be forged', () => {
    const { headers, ...facts } = fromWire(toWire(message));
    expect(facts).toEqual({
      id: 'm1',
      topic: 'order:paid',
      key: 'o1',
      sequence: 3,
      createdMs: 1_700_000_000_000,
    });
    expect(headers).toEqual({ trace: 't1' });
    expect(fromWire({ 'turngate-sequence': 'x', 'turngate-created-ms': '-1' })).toMatchObject({
      id: undefined,
      sequence: undefined,
      createdMs: undefined,
    });
  });
});

describe("Kafka's wrapper, without a broker", () => {
  it('sends with all acks, keyed, under a name Kafka takes', async () => {
    const sent: unknown[] = [];
    const producer = { send: async (what: unknown) => void sent.push(what) };
    await kafkaPublisher(producer).publish(message);
    expect(sent).toEqual([
      {
        topic: 'order.paid',
        acks: -1,
        messages: [
          { key: 'o1', value: '{"n":1}', headers: toWire(message), timestamp: '1700000000000' },
        ],
      },
    ]);
    const failing = { send: () => Promise.reject(new Error('no leader')) };
    await expect(kafkaPublisher(failing).publish(message)).rejects.toThrow('no leader');
  });

  it('returns on applied and duplicate, throws on a failed effect, buries the rest', async () => {
    const dead: string[] = [];
    const deadLetter = async (_record: unknown, reason: string): Promise<void> => {
      dead.push(reason);
    };
    const handle = (answer: Parameters<typeof scripted>[0], effect = async () => {}) => {
      const { inbox, asked } = scripted(answer);
      return { each: kafkaEachMessage(inbox, effect, { deadLetter }), asked };
    };
    const good = record(asBytes(toWire(message)));
    const first = handle('run');
    await first.each(good);
    expect(first.asked).toEqual([
      { messageId: 'm1', source: 'order:paid', createdMs: 1_700_000_000_000 },
    ]);
    await handle('duplicate').each(good);
    expect(dead).toEqual([]);
    const failing = handle('run', () => Promise.reject(new Error('not now')));
    await expect(failing.each(good)).rejects.toThrow('not now');
    await handle('parked').each(good);
    await handle('too-old').each(good);
    await handle('run').each(record({}));
    await handle('run').each(record({ 'turngate-id': 'ü' }));
    expect(dead).toEqual(['parked', 'too-old', 'no usable message id', 'no usable message id']);
  });
});

describe("BullMQ's processor, without a queue", () => {
  it('fails for good what is dead, and does not take a job number for a message id', async () => {
    const job = { name: 'x', queueName: 'q', id: '1', data: { a: 1 }, attemptsStarted: 1 };
    const foreign = bullmqProcessor(scripted('run').inbox, async () => {});
    await expect(foreign(job)).rejects.toMatchObject({ name: 'UnrecoverableError' });
    const { inbox, asked } = scripted('run');
    const named = bullmqProcessor(inbox, async ({ payload }) => payload, {
      messageId: ({ data }) => `a${data.a}`,
    });
    expect(await named(job)).toBe('{"a":1}');
    await named({ ...job, attemptsStarted: 2 });
    expect(asked).toEqual([
      { messageId: 'a1', source: 'q', redelivered: false },
      { messageId: 'a1', source: 'q', redelivered: true },
    ]);
  });
});

describe("Redis' answers", () => {
  const entries = [
    { entryId: '1-0', fields: { a: 'b', c: 'd' } },
    { entryId: '2-0', fields: undefined },
  ];
  const raw = [
    ['1-0', ['a', 'b', 'c', 'd']],
    ['2-0', null],
  ];

  it('are read alike in both protocol versions', () => {
    expect(entriesOfRead([['s', raw]])).toEqual(entries);
    expect(entriesOfRead(['s', raw])).toEqual(entries);
    expect(entriesOfRead({ s: raw })).toEqual(entries);
    expect(entriesOfRead(new Map([['s', raw]]))).toEqual(entries);
    expect(entriesOfRead(null)).toEqual([]);
    expect(entriesOfClaim(['0-0', raw, []])).toEqual(entries);
  });
});
