/**
 * How a process hears that a lock it waits for was given to it: one channel and one subscribing
 * connection per store, opened when somebody has to wait for the first time and kept.
 */
import type { LockGranted } from '../../contract/lock-store.ts';
import { ChurnMap } from '../../runtime/churn-map.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { RedisDriver } from './driver.ts';

/** What a waiter does when it hears something. */
export type OnPush = (granted?: LockGranted) => void;

/** A message: 16 digits of fence, then the owner. */
const fenceDigits = 16;
/** Waiting for the subscription longer than this is worse than polling. */
const openLimitMs = 1_000;

type State = 'closed' | 'opening' | 'live' | 'down' | 'refused' | 'ended';

/** The inbox of one store. */
export class Inbox {
  private state: State = 'closed';
  /** One for each attempt: it has one campaign. */
  private readonly watchers = new ChurnMap<OnPush>();
  private readonly driver: RedisDriver;
  private readonly runtime: Runtime;
  private readonly channel: string;
  private readonly address: string;
  private end: (() => void) | undefined;
  private opened: Promise<void> | undefined;

  /** @param canHear can PUBLISH say whether we heard it? */
  constructor(driver: RedisDriver, runtime: Runtime, channel: string, canHear: boolean) {
    this.driver = driver;
    this.runtime = runtime;
    this.channel = channel;
    this.address = `${canHear ? '!' : '?'}${channel}`;
  }

  /** Called when it is known that nothing will ever be heard any more. */
  onEnd: () => void = () => {};

  private get works(): boolean {
    return this.state !== 'refused' && this.state !== 'ended';
  }

  /**
   * What a waiter gives as its inbox. While the connection is down too: nobody hears it then, and the
   * waiter is passed over instead of keeping everybody waiting. Empty when it never was open.
   */
  get givenAddress(): string {
    return this.state === 'live' || this.state === 'down' ? this.address : '';
  }

  /**
   * Opens it, if that has not been tried yet.
   *
   * @returns whether the caller should try again: it became live after the caller's last try
   */
  async open(): Promise<boolean> {
    if (this.state === 'live' || !this.works) return false;
    this.opened ??= this.start();
    await this.opened;
    return (this.state as State) === 'live';
  }

  watch(owner: string, onPush: OnPush): () => void {
    this.watchers.set(owner, onPush);
    return () => void this.watchers.delete(owner);
  }

  /** Ends the connection it opened. Waiters go on by polling. */
  close(): void {
    this.state = 'ended';
    this.onEnd();
    this.end?.();
    this.end = undefined;
  }

  private start(): Promise<void> {
    return new Promise((resolve) => {
      this.state = 'opening';
      // Whoever waits for the opening tries again by itself; nobody else missed anything.
      let awaited = true;
      const settle = (): void => {
        awaited = false;
        timer.cancel();
        resolve();
      };
      const timer = this.runtime.timer(openLimitMs, true, settle);
      this.end = this.driver.subscribe(this.channel, {
        message: (payload) => this.receive(payload),
        live: () => {
          if (!this.works) return;
          this.state = 'live';
          if (!awaited) this.wakeAll();
          settle();
        },
        down: () => {
          if (this.state === 'live') this.state = 'down';
        },
        refused: () => {
          this.state = 'refused';
          this.onEnd();
          settle();
        },
      });
    });
  }

  private receive(payload: string): void {
    const onPush = this.watchers.get(payload.slice(fenceDigits));
    if (onPush === undefined) return; // It has left; its release gives the lock on.
    const fence = BigInt(payload.slice(0, fenceDigits));
    onPush(fence === 0n ? undefined : { kind: 'granted', fence });
  }

  /** What was said while nobody listened is lost: everybody asks. */
  private wakeAll(): void {
    for (const [, onPush] of this.watchers.entries()) onPush();
  }
}
