/** The key a provider gets for one step: the same over all attempts, another for every other step. */
import { hash } from 'node:crypto';
import { type RecordId, recordIdText } from './record-id.ts';

/**
 * 43 characters of A-Z, a-z, 0-9, `-` and `_`. It is a digest, so neither the scope nor the caller's
 * key is told to the provider. Cut it for a provider that takes less; 22 characters are still 128
 * bits.
 *
 * @param step the step's name
 */
export function providerKeyOf(id: RecordId, step: string): string {
  return hash(
    'sha256',
    `turngate.step.1 ${recordIdText(id).length}:${recordIdText(id)}${step}`,
    'base64url',
  );
}
