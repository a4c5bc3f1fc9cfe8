// biome-ignore-all lint/suspicious/noExplicitAny: each ORM has generics of its own, which no shared law can name.
import { typeormTx } from 'turngate/orm';
import { DataSource, EntitySchema } from 'typeorm';
import { ormSuite } from './laws.ts';
import type { Orm } from './world.ts';

const effect = new EntitySchema<{ line: string }>({
  name: 'orm_effect',
  columns: { line: { type: 'varchar', length: 200, primary: true } },
});

async function opened(options: any): Promise<Orm<any>> {
  const source = await new DataSource({ ...options, entities: [effect] }).initialize();
  return {
    transaction: (body) => source.transaction(body),
    session: (tx) => typeormTx(tx),
    insert: (tx, line) => tx.insert(effect, { line }),
    outside: source.manager,
    close: () => source.destroy(),
  };
}

ormSuite<any>('TypeORM', {
  postgres: ({ url }) => opened({ type: 'postgres', url, poolSize: 8 }),
  mysql: ({ url }) => opened({ type: 'mariadb', url, poolSize: 8 }),
});
