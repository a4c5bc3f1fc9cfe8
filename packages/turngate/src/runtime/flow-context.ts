/**
 * The logical flow a call belongs to, carried over `await`s: which locks it holds. Two flows in one
 * process are two holders. Not for hot paths: see idempotency/work.ts for what a context costs.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

interface Frame {
  readonly what: string;
  readonly value: unknown;
  /** Closed frames are skipped, so a promise left behind by a body cannot re-enter what has ended. */
  open: boolean;
  readonly parent: Frame | undefined;
}

const storage = new AsyncLocalStorage<Frame>();

/** Runs `body` inside a frame named `what`; the frame is closed when the body has settled. */
export function inFrame<T>(what: string, value: unknown, body: () => Promise<T> | T): Promise<T> {
  const frame: Frame = { what, value, open: true, parent: storage.getStore() };
  return storage.run(frame, async () => {
    try {
      return await body();
    } finally {
      frame.open = false;
    }
  });
}

/** The value of the innermost open frame named `what`, if this flow is inside one. */
export function findFrame(what: string): { readonly value: unknown } | undefined {
  for (let frame = storage.getStore(); frame !== undefined; frame = frame.parent) {
    if (frame.open && frame.what === what) return frame;
  }
  return undefined;
}
