/** L47: what payment channels read, to the byte, first and repeated, through every framework. */

import { type AckChannel, acknowledge } from 'turngate/http';
import { expect } from 'vitest';
import { send } from '../client.ts';
import type { Experiment } from '../experiments.ts';
import type { Reply } from '../world.ts';

const exact: readonly (readonly [AckChannel, number, string, string | undefined])[] = [
  [
    'wechat-v2',
    200,
    '<xml><return_code><![CDATA[SUCCESS]]></return_code><return_msg><![CDATA[OK]]></return_msg></xml>',
    'text/xml',
  ],
  ['wechat-v3', 204, '', undefined],
  ['alipay', 200, 'success', 'text/plain'],
  ['stripe', 200, '{"received":true}', 'application/json'],
  ['adyen', 200, '[accepted]', 'text/plain'],
];

let count = 0;

export const callbackExperiments: readonly Experiment[] = exact.map(
  ([channel, status, text, type]): Experiment => ({
    law: `L47: ${channel}: a failure is retried, first and repeat are acknowledged alike`,
    async run({ app, tag, world }) {
      let tries = 0;
      const paid = world.gate.operation({
        name: `ack.${channel}.n${++count}`,
        key: (id: string) => id,
        async run(id: string, { tx }: { tx: unknown }) {
          await world.write(tx, `${tag}${id}`);
          if (++tries === 1) throw new Error('the database hiccups');
          return {};
        },
      });
      const { url } = await app({
        path: '/callback',
        protect: false,
        async handle({ text: id }): Promise<Reply> {
          const response = await acknowledge(channel, () => paid(id));
          return { ...response, headers: Object.fromEntries(response.headers) };
        },
      });
      const failed = await send(`${url}/callback`, { body: 'n1' });
      expect([failed.status, failed.text]).not.toEqual([status, text]);
      for (let i = 0; i < 3; i++) {
        const answer = await send(`${url}/callback`, { body: 'n1' });
        expect([answer.status, answer.text]).toEqual([status, text]);
        const given = answer.headers['content-type'];
        expect(type === undefined ? given : String(given).split(';')[0]).toBe(type);
      }
      expect(await world.lines(tag)).toEqual([`${tag}n1`]);
    },
  }),
);
