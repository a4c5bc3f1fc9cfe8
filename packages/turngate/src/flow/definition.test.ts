import { describe, expect, it } from 'vitest';
import { type FlowDeclaration, planFlow, quoteIdentifier } from './definition.ts';
import { defineFlow } from './flow.ts';

const order = {
  name: 'order',
  table: 'shop_order',
  states: ['created', 'paid', 'shipped', 'cancelled'],
  transitions: {
    pay: { from: ['created'], to: 'paid' },
    ship: { from: ['paid'], to: 'shipped' },
    cancel: { from: ['created', 'paid'], to: 'cancelled' },
  },
} as const;

const bad = expect.objectContaining({ code: 'OPTION_INVALID' });
const noSession = (): never => {
  throw new Error('no statement may be sent');
};

describe('declaring a flow', () => {
  it('draws itself', () => {
    expect(defineFlow(order, noSession).mermaid()).toBe(
      [
        'stateDiagram-v2',
        '  created --> paid: pay',
        '  paid --> shipped: ship',
        '  created --> cancelled: cancel',
        '  paid --> cancelled: cancel',
      ].join('\n'),
    );
  });

  it('knows the states in which an event has happened already', () => {
    const { after } = planFlow<string, string>(order);
    // `cancelled` can be reached past `paid`, and without it: it counts as past.
    expect(after.get('pay')).toEqual(new Set(['paid', 'shipped', 'cancelled']));
    expect(after.get('ship')).toEqual(new Set(['shipped']));
    expect(after.get('cancel')).toEqual(new Set(['cancelled']));
  });

  it('does not take a state from which the event is allowed again for "already"', () => {
    const { after } = planFlow<string, string>({
      name: 'door',
      table: 'door',
      states: ['open', 'closed'],
      transitions: {
        close: { from: ['open'], to: 'closed' },
        open: { from: ['closed'], to: 'open' },
      },
    });
    expect(after.get('close')).toEqual(new Set(['closed']));
  });

  it.each([
    ['an identifier with a quote', { table: 'a"; DROP TABLE x; --' }],
    ['an empty schema', { table: '.a' }],
    ['an identifier with a space', { stateColumn: 'a b' }],
    ['an identifier with a semicolon', { idColumn: 'id;' }],
    ['an identifier that is too long', { versionColumn: 'v'.repeat(64) }],
    ['a name with a quote', { name: "order'" }],
    ['a state with a comma', { states: ['created', 'paid', 'shipped', 'cancelled', 'a,b'] }],
    ['an undeclared target', { transitions: { pay: { from: ['created'], to: 'gone' } } }],
    ['an undeclared source', { transitions: { pay: { from: ['gone'], to: 'paid' } } }],
    ['no source', { transitions: { pay: { from: [], to: 'paid' } } }],
    ['a move to itself', { transitions: { pay: { from: ['paid'], to: 'paid' } } }],
    ['a misspelt option', { stateCol: 'status' }],
  ])('refuses %s', (_, part) => {
    const declaration = { ...order, ...part } as unknown as FlowDeclaration<string, string>;
    expect(() => defineFlow(declaration, noSession)).toThrow(bad);
  });

  it('quotes identifiers', () => {
    expect(quoteIdentifier('x', 'user')).toBe('"user"');
    expect(planFlow<string, string>({ ...order, table: 'sales.user' }).table).toBe(
      '"sales"."user"',
    );
  });

  it.each(['explode', 'toString', '__proto__', ''])(
    'refuses the undeclared event %j before anything is sent',
    async (event) => {
      const flow = defineFlow<unknown, string, string>(order, noSession);
      await expect(flow.fire(event, { tx: {}, id: '1' })).rejects.toThrow(bad);
    },
  );

  it('refuses a column that is not an identifier before anything is sent', async () => {
    const flow = defineFlow<unknown, string, string>(order, () => ({
      dialect: 'postgres',
      query: noSession,
    }));
    const set = { 'note = 1; --': 1 };
    await expect(flow.fire('pay', { tx: {}, id: '1', set })).rejects.toThrow(bad);
  });
});
