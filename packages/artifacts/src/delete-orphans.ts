// SQL by hand: compares keys of a page of the store with the table.
import { column, type Queryable, queryRows } from '@runhook/database';
import type { ArtifactStore, StoredObject } from './store.ts';

/**
 * Age from which an object without a row is an orphan. Must exceed the longest upload, which has no row before its end,
 * and the difference between the clocks of the store and this host.
 */
const ORPHAN_AGE_MS = 86_400_000;

const SELECT_EXISTING = `
  SELECT object_id::text AS object_id FROM artifacts
  WHERE (account_id, run_id) IN (SELECT account_id, run_id FROM unnest($1::bigint[], $2::bigint[]) AS k (account_id, run_id))
    AND object_id = ANY ($3::uuid[])`;

/**
 * Deletes the objects without a row: those of uploads that were interrupted, of replaced files, and of files whose rows
 * expired or were lost with a restored backup. The store must belong to this database alone.
 * @returns the number of deleted objects
 */
export async function deleteOrphans(
  store: ArtifactStore,
  database: Queryable,
  { nowMs, stopping }: { nowMs: number; stopping?: AbortSignal | undefined },
): Promise<number> {
  let count = 0;
  for await (const page of store.list()) {
    const old = page.filter(({ storedAt }) => storedAt.getTime() < nowMs - ORPHAN_AGE_MS);
    const orphans = old.length === 0 ? [] : await withoutRow(database, old);
    if (orphans.length > 0) await store.delete(orphans);
    count += orphans.length;
    if (stopping?.aborted) break;
  }
  return count;
}

async function withoutRow(database: Queryable, objects: readonly StoredObject[]): Promise<StoredObject[]> {
  const rows = await queryRows(database, { object_id: column.text }, SELECT_EXISTING, [
    objects.map(({ accountId }) => accountId),
    objects.map(({ runId }) => runId),
    objects.map(({ objectId }) => objectId),
  ]);
  const existing = new Set(rows.map(({ object_id }) => object_id));
  return objects.filter(({ objectId }) => !existing.has(objectId));
}
