/**
 * 64 well-mixed bits of a text, fast, not secret-proof (two lanes of MurmurHash3's multipliers). Where
 * two texts meet, they only wait for each other: a unique index decides what is equal.
 */
export function hash64(text: string): bigint {
  let high = 0x9747b28c ^ text.length;
  let low = 0x5f0e2a1b;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    high = Math.imul(high ^ unit, 0xcc9e2d51);
    high = (high << 15) | (high >>> 17);
    low = Math.imul(low ^ unit, 0x1b873593);
    low = (low << 13) | (low >>> 19);
  }
  const mixedHigh = mix(high ^ Math.imul(low, 0xe6546b64));
  const mixedLow = mix(low ^ Math.imul(mixedHigh, 0x85ebca6b));
  return BigInt.asIntN(64, (BigInt(mixedHigh) << 32n) | BigInt(mixedLow));
}

/** MurmurHash3's finalizer: every input bit reaches every output bit. */
function mix(bits: number): number {
  let out = bits ^ (bits >>> 16);
  out = Math.imul(out, 0x85ebca6b);
  out ^= out >>> 13;
  out = Math.imul(out, 0xc2b2ae35);
  return (out ^ (out >>> 16)) >>> 0;
}
