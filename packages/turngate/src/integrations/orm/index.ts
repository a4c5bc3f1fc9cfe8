/** ORM transactions handed over: claim, effect and result in the ORM's own transaction. */

export { assertAlive } from './alive.ts';
export { type DrizzleSqlLike, drizzleTx } from './drizzle.ts';
export { type KnexTransactionLike, knexTx } from './knex.ts';
export { type KyselyTransactionLike, kyselyTx } from './kysely.ts';
export { type MikroOrmManagerLike, mikroOrmTx } from './mikro-orm.ts';
export { type PrismaTransactionLike, prismaTx } from './prisma.ts';
export { type OrmTransactions, ormRecords } from './records.ts';
export { type SequelizeTransactionLike, sequelizeTx } from './sequelize.ts';
export { type TypeormTransactionLike, typeormTx } from './typeorm.ts';
