/** A real PostgreSQL from npm that lives and dies with its Node process. */
export {
  EmbeddedPostgresError,
  type EmbeddedPostgresErrorCode,
} from './embedded-postgres-error.ts';
export type { EmbeddedPostgresOptions } from './options.ts';
export { type EmbeddedPostgres, startEmbeddedPostgres } from './start.ts';
