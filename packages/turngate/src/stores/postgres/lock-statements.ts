/** The statements of locks in table mode. clock_timestamp(), not now(): now() is the start time. */
import type { Statement } from './statements.ts';

const microseconds = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`;

const leaseEnd = "clock_timestamp() + $3::bigint * interval '1 millisecond'";

/** Of a row of turngate_lock `l`: milliseconds until its lease ends. */
const remaining = 'trunc(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::text';

/**
 * What a grant to $2 makes of a row. Of an attempt that holds it already (its reply was lost)
 * everything stays. Else the fence is the larger of the first one after the last block and the
 * server's microseconds, so it grows even if the newest rows were lost in a failover.
 */
const grant = `
      owner = $2,
      fence = CASE WHEN l.owner = $2 AND l.expires_at > clock_timestamp()
        THEN l.fence ELSE greatest(l.fence + l.fences, ${microseconds}) END,
      fences = CASE WHEN l.owner = $2 AND l.expires_at > clock_timestamp()
        THEN l.fences ELSE $4::bigint END,
      expires_at = CASE WHEN l.owner = $2 AND l.expires_at > clock_timestamp()
        THEN l.expires_at ELSE ${leaseEnd} END`;

/**
 * $1 name, $2 owner, $3 lease in milliseconds, $4 fences to reserve. Grants when free, expired, or
 * held by this very attempt.
 */
export const acquire: Statement = {
  name: 'turngate_lock_acquire_2',
  text: `WITH granted AS (
    INSERT INTO turngate_lock AS l (name, owner, fence, fences, expires_at)
    VALUES ($1, $2, ${microseconds}, $4::bigint, ${leaseEnd})
    ON CONFLICT (name) DO UPDATE SET ${grant}
    WHERE l.owner IS NULL OR l.owner = $2 OR l.expires_at <= clock_timestamp()
    RETURNING fence)
  SELECT fence::text, NULL::text FROM granted
  UNION ALL
  SELECT NULL, ${remaining}
  FROM turngate_lock WHERE name = $1 AND NOT EXISTS (SELECT FROM granted)`,
};

/**
 * $1 name, $2 next owner, $3 its lease, $4 its fences, $5 owner who leaves. Release and acquire of
 * one name in one step; no row when the name was never locked. If $2 has it already, the reply to
 * this very step was lost: then the answer is again that $5 had it.
 */
export const pass: Statement = {
  name: 'turngate_lock_pass_1',
  text: `WITH seen AS (
    SELECT owner, expires_at > clock_timestamp() AS live, ${remaining} AS remaining_ms
    FROM turngate_lock WHERE name = $1 FOR UPDATE),
  granted AS (
    UPDATE turngate_lock l SET ${grant}
    FROM seen
    WHERE l.name = $1
      AND (l.owner IS NULL OR l.owner IN ($2, $5) OR l.expires_at <= clock_timestamp())
    RETURNING l.fence)
  SELECT CASE
    WHEN owner IN ($2, $5) AND live THEN 'ours'
    WHEN owner IS NULL OR owner = $5 OR NOT live THEN 'expired'
    ELSE 'taken' END,
    (SELECT fence::text FROM granted), remaining_ms
  FROM seen`,
};

/**
 * $1 JSON list of {name, owner, leaseMs}; returns (ordinal, answer) for every name that exists. Bound
 * as text: postgres.js would encode a value for a jsonb parameter once more.
 */
export const renew: Statement = {
  name: 'turngate_lock_renew_1',
  text: `WITH wanted AS (
    SELECT w.ordinality, w.item ->> 'name' AS name, w.item ->> 'owner' AS owner,
      (w.item ->> 'leaseMs')::bigint AS lease_ms
    FROM jsonb_array_elements($1::text::jsonb) WITH ORDINALITY AS w (item, ordinality)),
  renewed AS (
    UPDATE turngate_lock l
    SET expires_at = clock_timestamp() + w.lease_ms * interval '1 millisecond'
    FROM wanted w
    WHERE l.name = w.name AND l.owner = w.owner AND l.expires_at > clock_timestamp()
    RETURNING w.ordinality)
  SELECT w.ordinality::text, CASE
    WHEN r.ordinality IS NOT NULL THEN 'ours'
    WHEN l.owner IS NULL OR l.owner = w.owner OR l.expires_at <= clock_timestamp() THEN 'expired'
    ELSE 'taken' END
  FROM wanted w
  JOIN turngate_lock l ON l.name = w.name
  LEFT JOIN renewed r ON r.ordinality = w.ordinality`,
};

/** $1 name, $2 owner. Frees it if it is still this owner's; says what it found. */
export const release: Statement = {
  name: 'turngate_lock_release_1',
  text: `WITH seen AS (
    SELECT name, owner, expires_at > clock_timestamp() AS live
    FROM turngate_lock WHERE name = $1 FOR UPDATE),
  freed AS (
    UPDATE turngate_lock l SET owner = NULL, expires_at = clock_timestamp()
    FROM seen WHERE l.name = seen.name AND seen.owner = $2 AND l.owner = $2)
  SELECT CASE
    WHEN owner = $2 AND live THEN 'ours'
    WHEN owner IS NULL OR owner = $2 OR NOT live THEN 'expired'
    ELSE 'taken' END
  FROM seen`,
};

/** $1 name. Takes it from whoever holds it; the fence stays, so the next one is greater. */
export const force: Statement = {
  name: 'turngate_lock_force_1',
  text: `UPDATE turngate_lock SET owner = NULL, expires_at = clock_timestamp()
  WHERE name = $1 AND owner IS NOT NULL AND expires_at > clock_timestamp()
  RETURNING name`,
};

/** $1 name. The live holder, if there is one. */
export const inspect: Statement = {
  name: 'turngate_lock_inspect_1',
  text: `SELECT owner, fence::text, ${remaining}
  FROM turngate_lock
  WHERE name = $1 AND owner IS NOT NULL AND expires_at > clock_timestamp()`,
};
