/** Reads single settings. Everything throws a RangeError that names variable, range and value. */

/** An integer; the fallback when the variable is missing or empty. */
export function integerOf(
  env: NodeJS.ProcessEnv,
  name: string,
  range: { readonly min: number; readonly max: number; readonly fallback: number },
): number {
  const text = env[name];
  if (text === undefined || text === '') return range.fallback;
  const value = Number(text);
  if (Number.isInteger(value) && value >= range.min && value <= range.max) return value;
  const { min, max } = range;
  throw new RangeError(`${name} must be an integer from ${min} to ${max}; got "${text}"`);
}

/** A URL that starts with one of the schemes, as `redis://`; undefined when missing or empty. */
export function urlOf(
  env: NodeJS.ProcessEnv,
  name: string,
  schemes: readonly string[],
): string | undefined {
  const text = env[name] || undefined;
  if (text === undefined || schemes.some((scheme) => text.startsWith(scheme))) return text;
  throw new RangeError(`${name} must start with ${schemes.join(' or ')}`);
}

/** A local time of the day, as `03:30`. */
export function clockOf(env: NodeJS.ProcessEnv, name: string, fallback: string): string {
  const text = env[name] || fallback;
  if (/^([01]\d|2[0-3]):[0-5]\d$/.test(text)) return text;
  throw new RangeError(`${name} must be a time as 03:30; got "${text}"`);
}

/** An IANA time zone. */
export function zoneOf(env: NodeJS.ProcessEnv, name: string, fallback: string): string {
  const text = env[name] || fallback;
  try {
    new Intl.DateTimeFormat('en', { timeZone: text });
    return text;
  } catch {
    throw new RangeError(`${name} must be a time zone as Asia/Shanghai; got "${text}"`);
  }
}
