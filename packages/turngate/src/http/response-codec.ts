/** Encryption of stored responses. */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { TurngateError } from '../core/errors.ts';
import { optionError } from '../core/option.ts';
import { type Runtime, systemRuntime } from '../runtime/runtime.ts';

/** Seals the stored form of a response. The key id travels in clear with the sealed text. */
export interface ResponseCodec {
  /** The key new responses are sealed with. */
  readonly keyId: string;
  /** `identity` names the record; bind it, so that sealed texts cannot be swapped between records. */
  seal(text: string, identity: string): string | Promise<string>;
  /** Must still open what was sealed with retired keys, until their records have expired. */
  open(keyId: string, sealed: string, identity: string): string | Promise<string>;
}

/** Options of {@link aesGcmCodec}. */
export interface AesGcmOptions {
  /** Keys of 32 bytes by id: the current one, and the retired ones until their records expired. */
  readonly keys: Readonly<Record<string, Uint8Array>>;
  /** The id of the key to seal with. */
  readonly current: string;
  /** @internal */
  readonly runtime?: Runtime;
}

const nonceBytes = 12;
const tagBytes = 16;

/**
 * AES-256-GCM with a random nonce, bound to the record's identity. Rotate by adding a key and making
 * it `current`; well below 2^32 responses per key, because nonces are random.
 *
 * @throws OPTION_INVALID
 */
export function aesGcmCodec(options: AesGcmOptions): ResponseCodec {
  const { keys, current, runtime = systemRuntime } = options;
  for (const [id, key] of Object.entries(keys)) {
    if (key instanceof Uint8Array && key.length === 32) continue;
    throw optionError(`keys.${id}`, '32 bytes', key instanceof Uint8Array ? key.length : key);
  }
  if (!Object.hasOwn(keys, current)) throw optionError('current', 'the id of a key', current);
  return {
    keyId: current,
    seal(text, identity) {
      const nonce = Buffer.from(runtime.randomId(), 'base64url').subarray(0, nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', keys[current] as Uint8Array, nonce);
      cipher.setAAD(Buffer.from(identity, 'utf8'));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
    },
    open(keyId, sealed, identity) {
      const key = Object.hasOwn(keys, keyId) ? keys[keyId] : undefined;
      if (key === undefined) {
        throw new TurngateError('RECORD_UNREADABLE', 'the key that sealed this response is gone');
      }
      const bytes = Buffer.from(sealed, 'base64');
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes));
      decipher.setAAD(Buffer.from(identity, 'utf8'));
      decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
      const text = decipher.update(bytes.subarray(nonceBytes + tagBytes));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    },
  };
}
