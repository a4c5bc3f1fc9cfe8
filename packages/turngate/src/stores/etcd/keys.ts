/** Keys of locks: `prefix/name/owner`, and the requests about them. */
import { pathSegment, textOfSegment } from '../../core/path-segment.ts';
import type { EtcdKeyValueLike } from './client.ts';

/** A range of keys as a request names it. */
export interface KeyRange {
  readonly key: Buffer;
  readonly range_end: Buffer;
}

/** Makes and reads the keys under one prefix. */
export class Keys {
  private readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  own({ name, owner }: { readonly name: string; readonly owner: string }): Buffer {
    return Buffer.from(`${this.prefix}${pathSegment(name)}/${pathSegment(owner)}`);
  }

  /** All keys of a name. Segments contain no slash, so `0`, its successor, ends the range. */
  queue(name: string): KeyRange {
    const start = `${this.prefix}${pathSegment(name)}`;
    return { key: Buffer.from(`${start}/`), range_end: Buffer.from(`${start}0`) };
  }
}

/** The owner behind a key. */
export function ownerOf({ key }: EtcdKeyValueLike): string {
  const text = Buffer.from(key).toString();
  return textOfSegment(text.slice(text.lastIndexOf('/') + 1));
}

/** The lease its owner asked for. */
export function leaseMsOf({ value }: EtcdKeyValueLike): number {
  return Number(Buffer.from(value).toString());
}

/** Reads the key that is first in the queue. */
export function readFirst(queue: KeyRange): object {
  return {
    request_range: { ...queue, sort_order: 'Ascend', sort_target: 'Create', limit: 1 },
  };
}

/** Reads the key right in front of a revision. */
export function readBefore(queue: KeyRange, revision: string): object {
  const before = String(BigInt(revision) - 1n);
  return {
    request_range: {
      ...queue,
      sort_order: 'Descend',
      sort_target: 'Create',
      max_create_revision: before,
      limit: 1,
    },
  };
}

/** True when the key was created at this revision; 0: when there is no such key. */
export function createdAt(where: { readonly key: Buffer }, revision: string | 0): object {
  return { ...where, target: 'Create', result: 'Equal', create_revision: revision };
}
