/** Consuming a Redis stream in a group: the effect and its mark commit first, then XACK. */
import { integerOption, knownOptions, optionError } from '../../core/option.ts';
import { ConsumerLife, type Consuming } from '../../message/consuming.ts';
import type { Inbox } from '../../message/inbox.ts';
import {
  type MessageEffect,
  type RawDelivery,
  type Receive,
  receiver,
  sourceOption,
} from '../../message/receiving.ts';
import { fromWire } from '../../message/wire.ts';
import { type Runtime, systemRuntime } from '../../runtime/runtime.ts';
import { backoffMs, sleep, waitFor } from '../../runtime/wait.ts';
import {
  commandSender,
  entriesOfClaim,
  entriesOfRead,
  type RedisCommands,
  type SendCommand,
  type StreamEntry,
} from './client.ts';
import { payloadField } from './publisher.ts';

/** How a stream is consumed. */
export interface RedisStreamConsumerOptions {
  /** The consumer group; made at the stream's beginning if it is not there. */
  readonly group: string;
  /** This process in the group. Stable names find their own unfinished entries at once. */
  readonly consumer: string;
  /**
   * Entries read and handled together. 1 in a group with one consumer keeps the stream's order,
   * failures included; two consumers keep none.
   *
   * @unit entries, integer, 1 to 1_000
   * @default 10
   */
  readonly batchEntries?: number;
  /**
   * Entries that another consumer has left alone for so long are taken over: longer than the
   * slowest effect. Too short costs work done twice and rolled back, never an effect twice.
   *
   * @unit milliseconds, integer, 100 to 86_400_000
   * @default 60_000
   */
  readonly takeOverMs?: number;
  /**
   * One read waits so long for new entries; `stop()` waits for it to end.
   *
   * @unit milliseconds, integer, 10 to 60_000
   * @default 1_000
   */
  readonly blockMs?: number;
  /** Where what cannot be consumed is copied to before its XACK. Default: `<stream>:dead`. */
  readonly deadStream?: string;
  /** Where message ids are unique. Default: the topic a message names, else the stream's name. */
  readonly source?: string;
  /**
   * Longest pause after a failure.
   *
   * @unit milliseconds, integer, 1 to 600_000
   * @default 30_000
   */
  readonly backoffCapMs?: number;
  /** Aborting it is `stop()`. */
  readonly signal?: AbortSignal;
  readonly runtime?: Runtime;
}

const known = [
  'group',
  'consumer',
  'batchEntries',
  'takeOverMs',
  'blockMs',
  'deadStream',
  'source',
  'backoffCapMs',
  'signal',
  'runtime',
];

/**
 * Consumes a stream. Give it a connection of its own: its reads block.
 *
 * - applied and duplicate: XACK; the effect threw: the entry stays pending and is tried again after a
 *   growing pause, before anything newer;
 * - parked, too old, or without a usable id: copied to `deadStream`, then XACK;
 * - Redis does not answer: asked again for ever with a growing pause; a lost stream or group is made
 *   anew. `ended` tells when the connection was closed by its owner.
 *
 * Not promised: more than Redis keeps. What it forgets in a crash never arrives.
 *
 * @throws OPTION_INVALID before any I/O
 */
export async function consumeRedisStream<Tx>(
  client: RedisCommands,
  stream: string,
  inbox: Inbox<Tx>,
  effect: MessageEffect<Tx, StreamEntry>,
  options: RedisStreamConsumerOptions,
): Promise<Consuming> {
  knownOptions('Redis stream consumer options', options, known);
  for (const [option, value] of [
    ['stream', stream],
    ['group', options.group],
    ['consumer', options.consumer],
  ] as const) {
    if (typeof value !== 'string' || value === '') throw optionError(option, 'a name', value);
  }
  const loop = new GroupLoop(commandSender(client), stream, receiver(inbox, effect), options);
  return await loop.start();
}

class GroupLoop {
  private readonly send: SendCommand;
  private readonly stream: string;
  private readonly receive: Receive<StreamEntry>;
  private readonly group: string;
  private readonly consumer: string;
  private readonly batch: string;
  private readonly takeOverMs: number;
  private readonly blockMs: number;
  private readonly deadStream: string;
  private readonly source: string | undefined;
  private readonly pause: { readonly baseMs: number; readonly capMs: number };
  private readonly runtime: Runtime;
  private readonly life: ConsumerLife;
  private looping: Promise<void> = Promise.resolve();
  private nextClaimMs = 0;
  private failures = 0;
  /** Entries of this consumer may be pending: look at them before anything newer. */
  private unfinished = true;

  constructor(
    send: SendCommand,
    stream: string,
    receive: Receive<StreamEntry>,
    options: RedisStreamConsumerOptions,
  ) {
    const number = (
      option: 'batchEntries' | 'takeOverMs' | 'blockMs' | 'backoffCapMs',
      min: number,
      max: number,
      fallback: number,
    ): number => integerOption(option, options[option], { min, max, fallback });
    this.send = send;
    this.stream = stream;
    this.receive = receive;
    this.group = options.group;
    this.consumer = options.consumer;
    this.batch = String(number('batchEntries', 1, 1_000, 10));
    this.takeOverMs = number('takeOverMs', 100, 86_400_000, 60_000);
    this.blockMs = number('blockMs', 10, 60_000, 1_000);
    const capMs = number('backoffCapMs', 1, 600_000, 30_000);
    this.pause = { baseMs: Math.min(200, capMs), capMs };
    this.deadStream = options.deadStream ?? `${stream}:dead`;
    this.source = sourceOption(options.source);
    this.runtime = options.runtime ?? systemRuntime;
    this.life = new ConsumerLife(stream, options.signal, () => this.loopEnd());
  }

  async start(): Promise<Consuming> {
    await this.makeGroup();
    this.looping = this.loop();
    return this.life;
  }

  /** A read that blocks ends by itself; one that Redis never answers is not waited for. */
  private async loopEnd(): Promise<void> {
    const onCut = (): Error => new Error('Redis does not answer');
    await waitFor(this.runtime, this.looping, { limitMs: this.blockMs + 1_000, onCut });
  }

  private async makeGroup(): Promise<void> {
    try {
      // From the beginning: what was sent before the group existed is not skipped.
      await this.send('XGROUP', 'CREATE', this.stream, this.group, '0', 'MKSTREAM');
    } catch (error) {
      if (!String((error as Error).message).includes('BUSYGROUP')) throw error;
    }
  }

  private async loop(): Promise<void> {
    while (!this.life.over) {
      try {
        if (await this.round()) this.failures = 0;
        else await this.rest();
      } catch (error) {
        if (isClosed(error)) return this.life.lose(error);
        if (String((error as Error).message).includes('NOGROUP')) {
          await this.makeGroup().catch(() => undefined);
        }
        await this.rest();
      }
    }
  }

  /** False when something has to be tried again after a pause. */
  private async round(): Promise<boolean> {
    if (this.runtime.monoMs() >= this.nextClaimMs) await this.takeOver();
    if (this.unfinished) {
      const own = entriesOfRead(await this.read('0'));
      if (own.length > 0) return await this.handleAll(own, true);
      this.unfinished = false;
    }
    return await this.handleAll(entriesOfRead(await this.read('>', this.blockMs)), false);
  }

  private async takeOver(): Promise<void> {
    const { stream, group, consumer, takeOverMs, batch } = this;
    const idle = String(takeOverMs);
    const claimed = entriesOfClaim(
      await this.send('XAUTOCLAIM', stream, group, consumer, idle, '0-0', 'COUNT', batch),
    );
    // Taken over, they are our own pending entries, in the stream's order with the others.
    if (claimed.length > 0) this.unfinished = true;
    this.nextClaimMs = this.runtime.monoMs() + Math.max(100, takeOverMs / 4);
  }

  private read(from: string, blockMs?: number): Promise<unknown> {
    const block = blockMs === undefined ? [] : ['BLOCK', String(blockMs)];
    const { group, consumer, batch, stream } = this;
    const head = ['XREADGROUP', 'GROUP', group, consumer, 'COUNT', batch];
    return this.send(...head, ...block, 'STREAMS', stream, from);
  }

  private async handleAll(list: readonly StreamEntry[], redelivered: boolean): Promise<boolean> {
    if (list.length > 0) this.unfinished = true; // Until each of them was acknowledged.
    const work = list.map((entry) => this.handle(entry, redelivered));
    const settled = Promise.allSettled(work);
    this.life.track(settled.then(() => undefined)); // stop() waits for these, acknowledged or not.
    await settled;
    const all = (await Promise.all(work)).every(Boolean);
    if (all && !redelivered) this.unfinished = false;
    return all;
  }

  /** True when the entry was acknowledged. */
  private async handle(entry: StreamEntry, redelivered: boolean): Promise<boolean> {
    const verdict = await this.receive(this.delivery(entry, redelivered));
    if (verdict.kind === 'again') return false;
    if (verdict.kind === 'dead') await this.bury(entry, verdict.reason);
    await this.send('XACK', this.stream, this.group, entry.entryId);
    return true;
  }

  /** Before the XACK: a crash in between leaves a second copy, never none. */
  private async bury({ entryId, fields = {} }: StreamEntry, reason: string): Promise<void> {
    const more = { ...fields, 'dead-reason': reason, 'dead-entry': entryId };
    await this.send('XADD', this.deadStream, '*', ...Object.entries(more).flat());
  }

  private async rest(): Promise<void> {
    const delayMs = backoffMs(this.runtime, ++this.failures, this.pause);
    await sleep(this.runtime, delayMs, this.life.signal).catch(() => undefined);
  }

  private delivery(entry: StreamEntry, redelivered: boolean): RawDelivery<StreamEntry> {
    const { [payloadField]: payload = '', ...rest } = entry.fields ?? {};
    const { id, topic, ...facts } = fromWire(rest);
    return {
      ...facts,
      messageId: id,
      source: this.source ?? topic ?? this.stream,
      payload,
      redelivered,
      raw: entry,
    };
  }
}

/** The owner has closed the client; everything else is worth another try. */
function isClosed(error: unknown): boolean {
  const { name, message } = error as Error;
  return name === 'ClientClosedError' || message === 'Connection is closed.';
}
