// biome-ignore-all lint/suspicious/noExplicitAny: each ORM has generics of its own, which no shared law can name.
import { DataTypes, Sequelize } from 'sequelize';
import { sequelizeTx } from 'turngate/orm';
import { ormSuite } from './laws.ts';
import type { Orm } from './world.ts';

function opened(url: string, dialect: 'postgres' | 'mysql'): Orm<any> {
  const sequelize = new Sequelize(url, { dialect, logging: false, pool: { max: 8 } });
  const columns = { line: { type: DataTypes.STRING(200), primaryKey: true } };
  const effect = sequelize.define('effect', columns, {
    tableName: 'orm_effect',
    timestamps: false,
  });
  return {
    transaction: (body) => sequelize.transaction(body),
    session: (tx) => sequelizeTx(tx),
    insert: (transaction, line) => effect.create({ line }, { transaction }),
    close: () => sequelize.close(),
  };
}

ormSuite<any>('Sequelize', {
  postgres: async ({ url }) => opened(url, 'postgres'),
  mysql: async ({ url }) => opened(url, 'mysql'),
});
