/** One act of an operator: checked, done, and written down in the same transaction where it can be. */
import type { AlongWith } from '../contract/record-store.ts';
import { optionError } from '../core/option.ts';
import type { RecordId } from '../core/record-id.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { AuditLine, AuditLog, AuditTargetKind } from './audit.ts';

/** How an act ended: done, nothing there, or not allowed in its state. */
export type ActAnswer = 'done' | 'missing' | 'refused';

/** Who writes where. */
export interface ActParts {
  readonly audit: AuditLog;
  readonly actor: string;
  readonly runtime: Runtime;
}

/** What is done, to what, and why. */
export interface Act {
  readonly act: string;
  readonly kind: AuditTargetKind;
  readonly target: RecordId;
  readonly reason: string;
  readonly detail?: string;
}

const reasonCharsMax = 1_000;

/** @throws OPTION_INVALID */
export function checkReason(reason: unknown): string {
  if (typeof reason === 'string' && reason.trim() !== '' && reason.length <= reasonCharsMax) {
    return reason;
  }
  throw optionError('reason', `a text of 1 to ${reasonCharsMax} characters`, reason);
}

/** @throws OPTION_INVALID */
export function checkActor(actor: unknown): string {
  if (typeof actor === 'string' && actor.trim() !== '' && Buffer.byteLength(actor) <= 255) {
    return actor;
  }
  throw optionError('actor', 'the name of who acts, 1 to 255 bytes', actor);
}

/**
 * In the transaction of the act: the line commits with it or not at all.
 *
 * @param run does the act and calls what it is given inside its transaction
 */
export async function actWith(
  parts: ActParts,
  act: Act,
  run: (also: AlongWith | undefined) => Promise<ActAnswer>,
): Promise<ActAnswer> {
  if (!parts.audit.joins)
    return (await actApart(parts, act, async () => ({ answer: await run(undefined) }))).answer;
  const line = lineOf(parts, act);
  return await run((session) => parts.audit.write({ ...line, outcome: 'done' }, session));
}

/** Without a common transaction: the line is there before the act, and says afterwards how it ended. */
export async function actApart<Answer extends ActAnswer>(
  parts: ActParts,
  act: Act,
  run: () => Promise<{ readonly answer: Answer; readonly detail?: string }>,
): Promise<{ readonly answer: Answer; readonly detail: string }> {
  const line = lineOf(parts, act);
  await parts.audit.write(line);
  try {
    const { answer, detail = line.detail } = await run();
    await parts.audit.settle(line.id, answer, detail);
    return { answer, detail };
  } catch (error) {
    // The act's own error is what the caller must see.
    await parts.audit.settle(line.id, 'failed', line.detail).catch(() => undefined);
    throw error;
  }
}

function lineOf({ actor, runtime }: ActParts, act: Act): AuditLine {
  const { kind, target, reason, detail = '' } = act;
  const id = runtime.randomId();
  return { id, actor, act: act.act, kind, ...target, reason, detail, outcome: 'asked' };
}
