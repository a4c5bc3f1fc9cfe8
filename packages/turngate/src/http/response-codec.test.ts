import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { aesGcmCodec } from './response-codec.ts';

const keys = { a: randomBytes(32), b: randomBytes(32) };

describe('the AES-GCM codec', () => {
  it('opens what it sealed, and no two seals are alike', async () => {
    const codec = aesGcmCodec({ keys, current: 'a' });
    const sealed = await codec.seal('secret é', 'id');
    expect(sealed).not.toContain('secret');
    expect(await codec.seal('secret é', 'id')).not.toBe(sealed);
    expect(await codec.open('a', sealed, 'id')).toBe('secret é');
  });

  it('opens with a retired key after rotation, and refuses one that is gone', async () => {
    const sealed = await aesGcmCodec({ keys, current: 'a' }).seal('x', 'id');
    const rotated = aesGcmCodec({ keys, current: 'b' });
    expect(rotated.keyId).toBe('b');
    expect(await rotated.open('a', sealed, 'id')).toBe('x');
    const later = aesGcmCodec({ keys: { b: keys.b }, current: 'b' });
    expect(() => later.open('a', sealed, 'id')).toThrow(
      expect.objectContaining({ code: 'RECORD_UNREADABLE' }),
    );
  });

  it('a sealed text moved to another record or changed does not open', async () => {
    const codec = aesGcmCodec({ keys, current: 'a' });
    const sealed = (await codec.seal('x', 'alice')) as string;
    expect(() => codec.open('a', sealed, 'bob')).toThrow();
    const bytes = Buffer.from(sealed, 'base64');
    bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
    expect(() => codec.open('a', bytes.toString('base64'), 'alice')).toThrow();
  });

  it.each([
    [{ keys: { a: randomBytes(16) }, current: 'a' }],
    [{ keys, current: 'c' }],
    [{ keys, current: 'toString' }],
  ])('refuses bad options (%#)', (options) => {
    expect(() => aesGcmCodec(options)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }));
  });
});
