/** How each dialect keeps records: what the operators' verbs have to know. */
import { hash } from 'node:crypto';
import type { SqlDialect, SqlValue } from '../../contract/sql-session.ts';
import { type RecordId, recordIdDigest, recordIdText } from '../../core/record-id.ts';
import { sqlNowMs } from '../../core/sql-text.ts';

/** Column names, and the columns of the primary key in order. */
export interface RecordLayout {
  readonly now: string;
  readonly key: string;
  readonly firstMs: string;
  readonly expiresMs: string;
  readonly resultBytes: string;
  readonly order: readonly string[];
  /** The primary key of an identity. */
  readonly orderOf: (id: RecordId) => readonly SqlValue[];
  /** Keys compare as bytes: how a text is bound, and how a key column is written into a cursor. */
  readonly bind: (text: string) => SqlValue;
  readonly toCursor: (value: unknown) => string;
  readonly fromCursor: (text: string) => SqlValue;
  /** Does the primary key start with the operation? A walk over one operation then reads only it. */
  readonly operationFirst: boolean;
}

const same = (value: unknown): string => String(value);

const byDigest = {
  key: 'record_key',
  firstMs: 'first_processed_ms',
  expiresMs: 'expires_ms',
  order: ['id'],
  operationFirst: false,
} as const;

/** One layout per dialect. */
export const recordLayouts: Readonly<Record<SqlDialect, RecordLayout>> = {
  postgres: {
    now: sqlNowMs.postgres,
    key: 'key',
    firstMs: 'trunc(extract(epoch FROM first_processed_at) * 1000)::bigint',
    expiresMs: 'trunc(extract(epoch FROM expires_at) * 1000)::bigint',
    resultBytes: 'octet_length(result)', // Known without reading a result that lies out of line.
    order: ['operation', 'scope', 'key'],
    orderOf: ({ operation, scope, key }) => [operation, scope, key],
    bind: same,
    toCursor: same,
    fromCursor: same,
    operationFirst: true,
  },
  mysql: {
    ...byDigest,
    now: sqlNowMs.mysql,
    resultBytes: 'LENGTH(result)',
    orderOf: (id) => [hash('sha256', recordIdText(id), 'buffer')],
    bind: (text) => Buffer.from(text), // As bytes: no character set of the connection matters.
    toCursor: (value) => Buffer.from(value as Uint8Array).toString('hex'),
    fromCursor: (text) => Buffer.from(text, 'hex'),
  },
  sqlite: {
    ...byDigest,
    now: sqlNowMs.sqlite,
    resultBytes: 'LENGTH(CAST(result AS BLOB))',
    orderOf: (id: RecordId) => [recordIdDigest(id)],
    bind: same,
    toCursor: same,
    fromCursor: same,
  },
};
