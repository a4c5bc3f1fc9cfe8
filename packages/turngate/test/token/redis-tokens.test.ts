import { expect, it } from 'vitest';
import type { ScriptClient } from '../../src/redis/script-client.ts';
import { redisSubmitTokens } from '../../src/token/index.ts';
import { clientKinds, freshPrefix, ioredis } from '../redis/support.ts';
import { pause } from '../support/clock.ts';
import { rejection } from '../support/errors.ts';
import { describeWith, serverUrl } from '../support/servers.ts';

const purpose = { operation: 'order.create', subject: 'user:7' };

describeWith('redis', 'submit tokens in Redis', () => {
  for (const [name, connect] of Object.entries(clientKinds)) {
    it(`${name}: of 50 at once one has it; repeats know whether the work is done`, async () => {
      const client = (await connect(serverUrl('redis'))) as unknown as ScriptClient;
      const tokens = redisSubmitTokens(client, { prefix: freshPrefix() });
      const { token, expiresAt } = await tokens.issue(purpose);
      expect(Math.abs(expiresAt.getTime() - Date.now() - 30 * 60_000)).toBeLessThan(5_000);
      const given = { ...purpose, token };
      const ends = await Promise.allSettled(
        Array.from({ length: 50 }, () => tokens.consume(given)),
      );
      const won = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
      expect(won).toHaveLength(1);
      const before = await rejection(tokens.consume(given), 'REPEATED_SUBMIT');
      expect(before['outcome']).toBe('unknown');
      await won[0]?.complete();
      const after = await rejection(tokens.consume(given), 'REPEATED_SUBMIT');
      expect(after['outcome']).toBe('applied');
      expect(await won[0]?.undo()).toBe(false); // Done is done.
      await rejection(tokens.consume(given), 'REPEATED_SUBMIT');
    });
  }

  it('undo makes the token good again, once, and not for another owner', async () => {
    const tokens = redisSubmitTokens(ioredis(serverUrl('redis')), { prefix: freshPrefix() });
    const { token } = await tokens.issue(purpose);
    const first = await tokens.consume({ ...purpose, token });
    expect(await first.undo()).toBe(true);
    const second = await tokens.consume({ ...purpose, token });
    expect(await first.undo()).toBe(false);
    await rejection(tokens.consume({ ...purpose, token }), 'REPEATED_SUBMIT');
    await second.complete();
  });

  it('an unknown, expired, other user’s or other operation’s token is refused; a spent one is remembered', async () => {
    const client = ioredis(serverUrl('redis'));
    const tokens = redisSubmitTokens(client, {
      prefix: freshPrefix(),
      ttlMs: 1_000,
      memoryMs: 1_000,
    });
    const [one, two] = [await tokens.issue(purpose), await tokens.issue(purpose)];
    const { token } = one;
    for (const given of [
      { ...purpose, token: 'A'.repeat(22) },
      { ...purpose, token, subject: 'user:8' },
      { ...purpose, token, operation: 'order.pay' },
    ]) {
      await rejection(tokens.consume(given), 'SUBMIT_TOKEN_INVALID');
    }
    await tokens.consume({ ...purpose, token: two.token });
    await pause(one.expiresAt.getTime() - Date.now() + 100);
    await rejection(tokens.consume({ ...purpose, token }), 'SUBMIT_TOKEN_INVALID');
    await rejection(tokens.consume({ ...purpose, token: two.token }), 'REPEATED_SUBMIT');
    await pause(two.expiresAt.getTime() - Date.now() + 1_100);
    await rejection(tokens.consume({ ...purpose, token: two.token }), 'SUBMIT_TOKEN_INVALID');
  });
});
