/** What happened in a chaos run, as its processes wrote it down, and as the resource kept it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One line. `fail` means unknown: the call may have had its effect. */
export interface Line {
  /** CLOCK_MONOTONIC, milliseconds: comparable between processes of one machine. */
  readonly t: number;
  readonly node: string;
  /** At the door of the store, at the caller of the library, or about the process itself. */
  readonly side: 'store' | 'client' | 'process';
  readonly verb: string;
  readonly phase?: 'call' | 'ok' | 'fail';
  readonly name?: string;
  /** Of an attempt at the store. */
  readonly owner?: string;
  /** Of one turn of a caller: from `acquire` to `release`. */
  readonly id?: string;
  readonly fence?: string;
  readonly leaseMs?: number;
  readonly waitMs?: number;
  readonly answer?: string;
  readonly code?: string;
}

/** An accepted write, in the order of the resource itself. */
export interface Effect {
  /** What the writer made of the counter. */
  readonly n: number;
  readonly id: string;
  readonly fence: string;
}

/** What the conductor did to the world, as far as the laws must know. */
export interface Faults {
  /** From when to when a process stood still. */
  readonly frozen: readonly { readonly node: string; readonly from: number; readonly to: number }[];
  /** Processes that were killed, and when. */
  readonly killed: ReadonlyMap<string, number>;
  /** When the store forgot grants by our doing: those asked for before its end may be gone. */
  readonly storeLost: readonly { readonly from: number; readonly to: number }[];
}

/** A whole run. */
export interface History {
  /** In order of time. */
  readonly lines: readonly Line[];
  /** By lock name. */
  readonly fenced: ReadonlyMap<string, readonly Effect[]>;
  readonly raw: ReadonlyMap<string, readonly Effect[]>;
  readonly faults: Faults;
}

/** Reads the files of a folder. A killed process may have left half a line. */
export function readLines(dir: string): Line[] {
  const lines = readdirSync(dir).flatMap((file) => {
    const whole = readFileSync(join(dir, file), 'utf8').split('\n').slice(0, -1);
    return whole.map((text) => JSON.parse(text) as Line);
  });
  return lines.sort((a, b) => a.t - b.t);
}

/** The clock of the history. */
export function monoMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
