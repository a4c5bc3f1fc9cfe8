// biome-ignore-all lint/suspicious/noExplicitAny: each ORM has generics of its own, which no shared law can name.
import { EntitySchema, MikroORM } from '@mikro-orm/postgresql';
import { mikroOrmTx } from 'turngate/orm';
import { ormSuite } from './laws.ts';

const effect = new EntitySchema<{ line: string }>({
  name: 'Effect',
  tableName: 'orm_effect',
  properties: { line: { type: 'string', primary: true } },
});

ormSuite<any>('MikroORM', {
  async postgres({ url }) {
    const orm = await MikroORM.init({
      clientUrl: url,
      entities: [effect],
      pool: { min: 0, max: 8 },
    } as any);
    return {
      transaction: (body) => orm.em.fork().transactional(body as any) as any,
      session: (tx) => mikroOrmTx(tx),
      insert: (tx, line) => tx.insert(effect, { line }),
      outside: orm.em.fork(),
      close: () => orm.close(),
    };
  },
});
