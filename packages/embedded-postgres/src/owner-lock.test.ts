import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isAlive, startChild, temporaryDir, until } from '../test/helpers.ts';
import { takeOwnership } from './owner-lock.ts';
import { identifyProcess } from './process-identity.ts';

test('is free again after release', async () => {
  const dir = await temporaryDir();
  const first = takeOwnership(dir);
  expect(() => takeOwnership(dir)).toThrow('in use by this process');
  first.release();
  first.release();
  const second = takeOwnership(dir);
  first.release();
  expect(() => takeOwnership(dir)).toThrow('in use by this process');
  second.release();
});

test('a new process with the number of the dead owner does not count as the owner', async () => {
  const dir = await temporaryDir();
  const reused = { ...identifyProcess(process.pid), stamp: 'an earlier process' };
  writeFileSync(join(dir, 'owner-000041.json'), JSON.stringify(reused));
  takeOwnership(dir);
  expect(readdirSync(dir)).toEqual(['owner-000042.json']);
  const record: unknown = JSON.parse(readFileSync(join(dir, 'owner-000042.json'), 'utf8'));
  expect(record).toEqual(identifyProcess(process.pid));
});

test('exactly one of many contenders takes over from a killed owner', async () => {
  const dir = await temporaryDir();
  const owner = await startChild('contender-child.mjs', dir);
  expect(owner.line).toBe('won');
  owner.process.kill('SIGKILL');
  await until('the owner is dead', () => !isAlive(owner.pid));
  const contenders = await Promise.all(
    Array.from({ length: 6 }, () => startChild('contender-child.mjs', dir)),
  );
  const lines = contenders.map(({ line }) => line).sort();
  expect(lines).toEqual(['lost', 'lost', 'lost', 'lost', 'lost', 'won']);
});
