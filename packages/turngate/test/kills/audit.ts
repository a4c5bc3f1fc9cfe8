/** Compares what callers were told with what was done. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What one caller was told: an answer, or a code. */
export interface Told {
  readonly call: string;
  readonly key: string;
  /** Which run made the effect; missing where the store does not tell it. */
  readonly token?: string;
  readonly replayed?: boolean;
  readonly code?: string;
  readonly ms: number;
}

/** Reads the files of a folder. A killed process may have left half a line. */
export function readTold(dir: string): Told[] {
  return readdirSync(dir).flatMap((file) => {
    const whole = readFileSync(join(dir, file), 'utf8').split('\n').slice(0, -1);
    return whole.map((text) => JSON.parse(text) as Told);
  });
}

/** Tokens of the committed effects, by `call|key`. */
export function tokensOf(lines: readonly string[]): Map<string, string[]> {
  const tokens = new Map<string, string[]>();
  for (const line of lines) {
    const [call, key, token] = line.split('|') as [string, string, string];
    const name = `${call}|${key}`;
    tokens.set(name, [...(tokens.get(name) ?? []), token]);
  }
  return tokens;
}

/** What broke: effects that were done twice, acknowledged and lost, or answered with another's. */
export function auditEffects(told: readonly Told[], lines: readonly string[]): string[] {
  const wrong: string[] = [];
  const tokens = tokensOf(lines);
  for (const [name, all] of tokens) {
    if (all.length > 1) wrong.push(`${name}: done ${all.length} times: ${all.join(' ')}`);
  }
  for (const { call, key, code, token } of told) {
    if (code !== undefined) continue;
    const [made] = tokens.get(`${call}|${key}`) ?? [];
    if (made === undefined) wrong.push(`${call}|${key}: acknowledged, but not done`);
    else if (token !== undefined && token !== made) {
      wrong.push(`${call}|${key}: answered ${token}, done by ${made}`);
    }
  }
  return wrong;
}

/** The same at a provider: one effect per request, under one key, whose answer is in our line. */
export function auditProvider(
  effects: ReadonlyMap<string, ReadonlyMap<string, string>>,
  lines: readonly string[],
): string[] {
  const wrong: string[] = [];
  for (const [what, keys] of effects) {
    if (keys.size !== 1) wrong.push(`provider: ${what} came with ${keys.size} keys`);
  }
  for (const [name, [token]] of tokensOf(lines)) {
    const [call, key] = name.split('|') as [string, string];
    if (call !== 'staged') continue;
    const [charged] = effects.get(`/charge/${key}`)?.values() ?? [];
    if (charged !== token) wrong.push(`${name}: our line says ${token}, the provider ${charged}`);
    if (!effects.has(`/ship/${key}`)) wrong.push(`${name}: never shipped`);
  }
  return wrong;
}

/** Codes callers were told, and how often. */
export function codesOf(told: readonly Told[]): Record<string, number> {
  const codes: Record<string, number> = {};
  for (const { code } of told) if (code !== undefined) codes[code] = (codes[code] ?? 0) + 1;
  return codes;
}
