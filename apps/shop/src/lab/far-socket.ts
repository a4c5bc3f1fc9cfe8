/** A connection to a database that is not on this machine: everything sent travels for a while. */
import { Socket } from 'node:net';

type Chunks = { chunk: unknown; encoding: BufferEncoding }[];
type Done = (error?: Error | null) => void;

/** One delay per flush, in order: statements sent together travel together. */
export class FarSocket extends Socket {
  private readonly tripMs: () => number;

  constructor(tripMs: () => number) {
    super();
    this.tripMs = tripMs;
  }

  override _write(chunk: unknown, encoding: BufferEncoding, done: Done): void {
    setTimeout(() => super._write(chunk, encoding, done), this.tripMs());
  }

  override _writev(chunks: Chunks, done: Done): void {
    setTimeout(() => super._writev?.(chunks, done), this.tripMs());
  }
}
