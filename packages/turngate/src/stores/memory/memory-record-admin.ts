/** What operators do to records in this process. */
import type {
  AlongWith,
  DropResults,
  ListedRecord,
  RecordAdmin,
  RecordFilter,
  RecordPage,
  StoredRecord,
} from '../../contract/record-store.ts';
import { integerOption } from '../../core/option.ts';
import { type RecordId, recordIdText } from '../../core/record-id.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** The port over the store's own map. */
export function memoryRecordAdmin(
  records: Map<string, StoredRecord>,
  runtime: Runtime,
): RecordAdmin {
  return {
    async list(filter) {
      const { operation, scope, key, state, sinceMs = 0, beforeMs = Infinity } = filter;
      const wanted = ({ id, ...record }: ListedRecord): boolean =>
        (operation ?? id.operation) === id.operation &&
        (scope ?? id.scope) === id.scope &&
        (key ?? id.key) === id.key &&
        (state ?? record.state) === record.state &&
        record.firstProcessedAtMs >= sinceMs &&
        record.firstProcessedAtMs < beforeMs;
      const nowMs = runtime.wallMs();
      return page([...records].map((entry) => listed(entry, nowMs)).filter(wanted), filter);
    },
    async remove(id: RecordId, also?: AlongWith) {
      const key = recordIdText(id);
      const record = records.get(key);
      if (record === undefined) return false;
      await also?.(undefined);
      return records.get(key) === record && records.delete(key);
    },
    async dropResults({ operation, olderThanMs, batchRows, after = '' }: DropResults) {
      const limit = integerOption('batchRows', batchRows, { min: 1, max: 10_000, fallback: 500 });
      const range = { min: 0, max: Number.MAX_SAFE_INTEGER, fallback: 0 };
      const beforeMs = runtime.wallMs() - integerOption('olderThanMs', olderThanMs, range);
      const keys = [...records.keys()].sort().filter((key) => key > after);
      let dropped = 0;
      for (const key of keys.slice(0, limit)) {
        const record = records.get(key) as StoredRecord;
        if (idOf(key).operation !== operation || record.firstProcessedAtMs > beforeMs) continue;
        if (record.state !== 'done' || record.result === '') continue;
        records.set(key, { ...record, result: '' });
        dropped++;
      }
      return { dropped, cursor: keys.length > limit ? keys[limit - 1] : undefined };
    },
  };
}

function page(all: readonly ListedRecord[], { after = '', limit }: RecordFilter): RecordPage {
  const size = integerOption('limit', limit, { min: 1, max: 1_000, fallback: 100 });
  const keyed = all.map((record) => ({ key: recordIdText(record.id), record }));
  const rest = keyed.filter(({ key }) => key > after).sort((a, b) => (a.key < b.key ? -1 : 1));
  const shown = rest.slice(0, size);
  const cursor = rest.length > size ? shown.at(-1)?.key : undefined;
  return { records: shown.map(({ record }) => record), cursor };
}

function listed([key, { result, ...record }]: [string, StoredRecord], nowMs: number): ListedRecord {
  const expired = record.expiresAtMs <= nowMs;
  return { ...record, id: idOf(key), resultBytes: Buffer.byteLength(result), expired };
}

/** Back from {@link recordIdText}, whose parts carry their lengths. */
function idOf(text: string): RecordId {
  const [operation, rest] = cut(text);
  const [scope, key] = cut(rest);
  return { operation, scope, key };
}

function cut(text: string): [string, string] {
  const colon = text.indexOf(':') + 1;
  const end = colon + Number(text.slice(0, colon - 1));
  return [text.slice(colon, end), text.slice(end)];
}
