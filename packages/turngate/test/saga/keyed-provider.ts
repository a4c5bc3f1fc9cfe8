/**
 * A provider outside that honours keys as strictly as payment providers do: what it has answered under a
 * key it answers again, and does nothing; also when the first answer was that there was nothing to do.
 */
import type { BranchOp } from '../../src/saga/branch.ts';

/** A call as it arrives there. */
export interface ProviderCall {
  readonly op: BranchOp;
  readonly gid: string;
  readonly providerKey: string;
  readonly tryKey: string;
}

export class KeyedProvider {
  /** What was asked, in order: op and key. */
  readonly asked: string[] = [];
  private readonly counts = new Map<string, number>();
  /** Tries that hold something. */
  readonly held = new Set<string>();
  private readonly answered = new Set<string>();
  private readonly effects = new Map<string, BranchOp[]>();

  /** Takes a call in, whole or not at all. */
  take({ op, gid, providerKey, tryKey }: ProviderCall): void {
    this.asked.push(`${op} ${providerKey}`);
    for (const what of [op, `${op} ${gid}`])
      this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
    if (this.answered.has(providerKey)) return;
    this.answered.add(providerKey);
    if (op === 'try') this.held.add(tryKey);
    else if (!this.held.delete(tryKey)) return;
    this.effects.set(gid, [...this.effectsOf(gid), op]);
  }

  /** What has happened for this transaction, in order. */
  effectsOf(gid: string): readonly BranchOp[] {
    return this.effects.get(gid) ?? [];
  }

  /** How often it was asked for this, of one transaction or of all. */
  times(op: BranchOp, gid?: string): number {
    return this.counts.get(gid === undefined ? op : `${op} ${gid}`) ?? 0;
  }
}
