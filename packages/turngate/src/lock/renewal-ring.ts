/**
 * Turns by the time of their next renewal, in slots of some milliseconds: putting one in, taking
 * one out and finding those that are due costs the same however many there are (the hashed timing
 * wheel of Varghese and Lauck, SOSP 1987, without its empty slots).
 */
import type { Due, DueHeap } from '../runtime/due-heap.ts';
import type { Turn } from './hold.ts';

const takenMax = 512; // Keeps one tick short in this process; the rest follows in the next one.

/** All turns in it are due at the end of their slot: a little late, never early. */
export class RenewalRing implements Due {
  readonly slotMs: number;
  dueMonoMs = 0;
  dueIndex = -1;
  private readonly slots = new Map<number, Turn[]>();
  private readonly clock: DueHeap;
  private readonly renew: (turns: readonly Turn[], nowMonoMs: number) => void;

  constructor(
    slotMs: number,
    clock: DueHeap,
    renew: (turns: readonly Turn[], nowMonoMs: number) => void,
  ) {
    this.slotMs = slotMs;
    this.clock = clock;
    this.renew = renew;
  }

  /** Puts in a turn that is in no slot. */
  add(turn: Turn): void {
    const number = Math.floor(turn.renewMonoMs / this.slotMs);
    let slot = this.slots.get(number);
    if (slot === undefined) {
      slot = [];
      this.slots.set(number, slot);
      const endMonoMs = this.endOf(number);
      if (this.dueIndex < 0 || endMonoMs < this.dueMonoMs) this.clock.set(this, endMonoMs);
    }
    turn.slot = slot;
    turn.dueIndex = slot.length;
    slot.push(turn);
  }

  onDue(nowMonoMs: number): void {
    const due: Turn[] = [];
    let nextMonoMs = Number.POSITIVE_INFINITY;
    for (const [number, slot] of this.slots) {
      const endMonoMs = this.endOf(number);
      if (endMonoMs <= nowMonoMs) {
        while (slot.length > 0 && due.length < takenMax) {
          const turn = slot.pop() as Turn;
          out(turn);
          due.push(turn);
        }
        if (slot.length === 0) this.slots.delete(number);
        else nextMonoMs = nowMonoMs + 1;
      } else if (endMonoMs < nextMonoMs) {
        nextMonoMs = endMonoMs;
      }
    }
    if (this.slots.size > 0) this.clock.set(this, nextMonoMs);
    this.renew(due, nowMonoMs);
  }

  private endOf(slotNumber: number): number {
    return (slotNumber + 1) * this.slotMs;
  }
}

/** Takes a turn out of its slot; safe when it is in none. */
export function leaveSlot(turn: Turn): void {
  const { slot, dueIndex } = turn;
  if (slot === undefined) return;
  out(turn);
  const last = slot.pop() as Turn;
  if (last === turn) return;
  slot[dueIndex] = last;
  last.dueIndex = dueIndex;
}

function out(turn: Turn): void {
  turn.slot = undefined;
  turn.dueIndex = -1;
}
