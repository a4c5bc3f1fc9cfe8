/**
 * A node:http response that is held back: what a handler writes is kept until the record is durable,
 * then sent as it was or replaced. Hooked at writeHead, write and end, so it does not matter which
 * framework, filter or error handler makes the answer.
 */
import { heldBytesMax, tooLarge } from './body-bytes.ts';
import { type HandlerResponse, type HttpResponse, headerLines, headerValue } from './message.ts';
import { type NodeResponse, sendNode } from './node-send.ts';

type Callback = (error?: Error | null) => void;
type Method = (...args: never[]) => unknown;

// Without these a browser hides even the problem document from its page.
const keptForBrowsers = /^(access-control-.*|vary)$/i;

const hooked = ['writeHead', 'write', 'end', 'flushHeaders', 'setHeader', 'appendHeader'] as const;

/** Holds a response from now on. */
export class HeldResponse {
  /** The handler's answer. Never settles when the handler never answers. */
  readonly answered: Promise<HandlerResponse>;
  private readonly res: NodeResponse;
  private readonly headersBefore: Record<string, unknown>;
  private readonly statusBefore: number;
  private readonly messageBefore: PropertyDescriptor | undefined;
  private readonly before = new Map<string, PropertyDescriptor | undefined>();
  private readonly original: Record<string, Method | undefined> = {};
  private readonly chunks: Buffer[] = [];
  private readonly endings: Callback[] = [];
  /** Of a stream: who waits for what was written before the commit. */
  private readonly written: Callback[] = [];
  private bytes = 0;
  private state: 'open' | 'head' | 'ended' | 'gone' = 'open';
  private mode: 'buffer' | 'stream';
  private waitsForDrain = false;
  private settle: { resolve(response: HandlerResponse): void; reject(error: Error): void };

  constructor(res: NodeResponse, mode: 'buffer' | 'stream') {
    this.res = res;
    this.mode = mode;
    this.headersBefore = { ...res.getHeaders() };
    this.statusBefore = res.statusCode;
    this.messageBefore = Object.getOwnPropertyDescriptor(res, 'statusMessage');
    this.settle = { resolve: () => {}, reject: () => {} };
    this.answered = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    this.answered.catch(() => {}); // Watched by whoever asked for it.
    this.install();
  }

  /** Sends the handler's own answer with some headers added; a stream goes on by itself. */
  release(headers: Readonly<Record<string, string>>): void {
    const { res } = this;
    this.restore();
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
    for (const callback of this.endings) res.once('finish', callback);
    if (this.state === 'ended') {
      for (const callback of this.written) res.once('finish', callback);
      const body = Buffer.concat(this.chunks);
      if (body.length === 0) res.end();
      else res.end(body);
      return;
    }
    // A stream: what was written meanwhile, then everything else directly.
    if (this.chunks.length === 0) (res as { flushHeaders?(): void }).flushHeaders?.();
    else res.write(Buffer.concat(this.chunks), () => this.tellWriters());
    if (this.waitsForDrain) res.emit('drain');
  }

  /** Sends something else; whatever the handler wrote or still writes is dropped. */
  replace(response: HttpResponse): void {
    this.forgetHeaders();
    this.restore();
    sendNode(this.res, response);
    this.swallow();
  }

  /** The same for a framework that will answer in any case: it believes that its answer leaves. */
  replaceUnseen(response: HttpResponse): void {
    this.replace(response);
    this.defineGetter('headersSent', () => false);
    this.defineGetter('writableEnded', () => false);
  }

  /** Gives the response back as it was before, for the framework's own error handling. */
  abandon(): void {
    this.forgetHeaders();
    this.restore();
  }

  private forgetHeaders(): void {
    this.state = 'gone';
    const { res } = this;
    const remove = res.removeHeader.bind(res);
    for (const name of Object.keys(res.getHeaders())) if (!keptForBrowsers.test(name)) remove(name);
    const set = (this.original['setHeader'] as NodeResponse['setHeader']).bind(res);
    for (const [name, value] of Object.entries(this.headersBefore)) set(name, value as string);
    res.statusCode = this.statusBefore;
    this.putBack('statusMessage', this.messageBefore);
    this.tellWriters();
  }

  private tellWriters(): void {
    for (const callback of this.written.splice(0)) callback();
  }

  private install(): void {
    const { res } = this;
    const own = res as unknown as Record<string, Method | undefined>;
    for (const name of hooked) {
      if (typeof own[name] !== 'function') continue;
      this.before.set(name, Object.getOwnPropertyDescriptor(res, name));
      this.original[name] = own[name];
    }
    const setHeader = (this.original['setHeader'] as Method).bind(res);
    const appendHeader = this.original['appendHeader']?.bind(res);
    this.define('setHeader', (...args: never[]) => {
      this.refuseAfterHead();
      return setHeader(...args);
    });
    if (appendHeader !== undefined) {
      this.define('appendHeader', (...args: never[]) => {
        this.refuseAfterHead();
        return appendHeader(...args);
      });
    }
    this.define('writeHead', (...args: unknown[]) => this.writeHead(args));
    this.define('write', (...args: unknown[]) => this.write(args));
    this.define('end', (...args: unknown[]) => this.end(args));
    if (this.original['flushHeaders'] !== undefined) {
      this.define('flushHeaders', () => this.head('flushed'));
    }
    this.defineGetter('headersSent', () => this.state !== 'open');
    this.defineGetter('writableEnded', () => this.state === 'ended');
  }

  private define(name: string, value: unknown): void {
    Object.defineProperty(this.res, name, { value, configurable: true, writable: true });
  }

  private defineGetter(name: string, get: () => boolean): void {
    this.before.set(name, Object.getOwnPropertyDescriptor(this.res, name));
    Object.defineProperty(this.res, name, { get, configurable: true });
  }

  private restore(): void {
    for (const [name, descriptor] of this.before) this.putBack(name, descriptor);
  }

  private putBack(name: string, descriptor: PropertyDescriptor | undefined): void {
    if (descriptor === undefined) delete (this.res as unknown as Record<string, unknown>)[name];
    else Object.defineProperty(this.res, name, descriptor);
  }

  /** After another answer has left, a handler that is still writing must not break the connection. */
  private swallow(): void {
    const { res } = this;
    this.define('writeHead', () => res);
    this.define('write', (...args: unknown[]) => this.write(args));
    this.define('end', (...args: unknown[]) => this.end(args));
    this.define('setHeader', () => res);
    this.define('flushHeaders', () => {});
  }

  private refuseAfterHead(): void {
    if (this.state === 'open') return;
    const error = new Error('Cannot set headers after they are sent to the client');
    throw Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' });
  }

  private writeHead(args: unknown[]): NodeResponse {
    this.refuseAfterHead();
    const [status, ...rest] = args;
    const { res } = this;
    res.statusCode = status as number;
    if (typeof rest[0] === 'string') res.statusMessage = rest.shift() as string;
    const given = rest[0] as Record<string, unknown> | unknown[] | undefined;
    const headers = Array.isArray(given) ? flatPairs(given) : Object.entries(given ?? {});
    for (const [name, value] of headers) {
      if (value !== undefined) res.setHeader(name, value as string);
    }
    this.head('written');
    return res;
  }

  /** The head is final. Decides between holding the body and letting it pass after the commit. */
  private head(why: 'written' | 'flushed' | 'body' | 'end'): void {
    if (this.state !== 'open') return;
    this.state = 'head';
    const type = headerValue(headerLines(this.res.getHeaders()), 'content-type') ?? '';
    if (/^text\/event-stream\b/i.test(type)) this.mode = 'stream';
    if (this.mode === 'stream' && why !== 'end') this.answer('stream');
  }

  private write(args: unknown[]): boolean {
    const callback = callbackIn(args);
    const isOver = this.state === 'ended' || this.state === 'gone';
    if (!isOver) {
      this.head('body');
      this.take(args);
    }
    if (isOver || this.mode === 'buffer') {
      // Whoever writes on only then would wait for an end that waits for them.
      soon(callback);
      return true;
    }
    if (callback !== undefined) this.written.push(callback);
    this.waitsForDrain = true;
    return false;
  }

  private end(args: unknown[]): NodeResponse {
    const callback = callbackIn(args);
    if (this.state === 'ended' || this.state === 'gone') {
      soon(callback);
      return this.res;
    }
    if (callback !== undefined) this.endings.push(callback);
    const wasOpen = this.state === 'open';
    this.head('end');
    this.take(args);
    this.state = 'ended';
    // A stream whose head went before has been answered already.
    if (this.mode === 'buffer' || wasOpen) {
      const empty = this.chunks.length === 0;
      this.answer(empty ? null : Buffer.concat(this.chunks));
    }
    return this.res;
  }

  private take(args: unknown[]): void {
    const [chunk, encoding] = args;
    if (typeof chunk === 'function' || chunk === undefined || chunk === null) return;
    const bytes =
      typeof chunk === 'string'
        ? Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
        : Buffer.from(chunk as Uint8Array); // A copy: the handler may reuse its buffer.
    if (bytes.length === 0) return;
    this.bytes += bytes.length;
    this.chunks.push(bytes);
    if (this.bytes <= heldBytesMax || this.mode === 'stream') return;
    this.state = 'gone';
    this.chunks.length = 0;
    this.settle.reject(tooLarge(heldBytesMax));
  }

  private answer(body: Buffer | null | 'stream'): void {
    const { statusCode: status } = this.res;
    this.settle.resolve({ status, headers: headerLines(this.res.getHeaders()), body });
  }
}

function callbackIn(args: readonly unknown[]): Callback | undefined {
  return args.find((arg) => typeof arg === 'function') as Callback | undefined;
}

/** As Node does: not before the call that was given it has returned. */
function soon(callback: Callback | undefined): void {
  void Promise.resolve().then(() => callback?.());
}

function flatPairs(list: readonly unknown[]): [string, unknown][] {
  if (Array.isArray(list[0])) return list as [string, unknown][];
  const pairs: [string, unknown][] = [];
  for (let i = 0; i + 1 < list.length; i += 2) pairs.push([String(list[i]), list[i + 1]]);
  return pairs;
}
