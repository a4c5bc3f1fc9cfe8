/** Compares a cell with the theory. */
import type { AuditReport } from './audit.ts';
import type { Theory } from './expectations.ts';
import { lossesInWords, lossWords, totalLosses } from './losses.ts';

/** What is wrong with a cell; undefined when it came out as the theory says. */
export function mismatchOf(report: AuditReport, theory: Theory): string | undefined {
  const { losses } = report;
  if (theory.verdict === 'may') return undefined;
  if (theory.verdict === 'clean') {
    if (totalLosses(losses) === 0) return undefined;
    return `should be clean (${theory.why}), and lost ${lossesInWords(losses)}`;
  }
  const missing = theory.kinds.filter((kind) => losses[kind] === 0);
  if (missing.length === 0) return undefined;
  const names = missing.map((kind) => lossWords[kind].many).join(' and ');
  return `should show ${names} (${theory.why}), and shows ${lossesInWords(losses) || 'no loss'}`;
}
