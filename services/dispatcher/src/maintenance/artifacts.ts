import { type ArtifactStore, deleteOrphans, type ObjectKey } from '@runhook/artifacts';
import { type BatchOptions, column, type Pool, queryRows, runInBatches, runInPages } from '@runhook/database';
import type { MaintenanceTask } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';

export interface ArtifactsOptions extends BatchOptions {
  pool: Pool;
  artifactStore: ArtifactStore;
  artifactRetentionDays: number;
  runRetentionDays: number;
}

const PURGE_EVERY_MS = 3_600_000;
const ORPHANS_EVERY_MS = 86_400_000;

/** Tasks that delete expired artifacts and models, and objects of the store without a row. */
export function artifactTasks({
  logger,
  ...options
}: ArtifactsOptions & { logger: Logger }): MaintenanceTask[] {
  return [
    {
      name: 'artifacts',
      everyMs: PURGE_EVERY_MS,
      async run() {
        const deleted = await purgeArtifacts(options);
        if (deleted.artifacts + deleted.models > 0)
          logger.info(deleted, 'deleted artifacts whose retention is over');
      },
    },
    {
      name: 'artifact-orphans',
      everyMs: ORPHANS_EVERY_MS,
      async run() {
        const { artifactStore, pool, stopping } = options;
        const count = await deleteOrphans(artifactStore, pool, { nowMs: Date.now(), stopping });
        if (count > 0) logger.info({ count }, 'deleted contents of artifacts that no row names');
      },
    },
  ];
}

/**
 * Deletes artifacts and models by the age of their run: after the retention of artifacts, and at the latest with the run.
 * Contents that cannot be deleted remain as orphans, which a later pass deletes. Safe to run concurrently.
 */
export async function purgeArtifacts(
  options: ArtifactsOptions,
): Promise<{ artifacts: number; models: number }> {
  const { pool, artifactRetentionDays, runRetentionDays } = options;
  const days = Math.min(artifactRetentionDays, runRetentionDays);
  const models = await runInBatches(pool, { ...DELETE_MODELS, values: [days] }, options);
  return { artifacts: await deleteArtifacts(options, days), models };
}

async function deleteArtifacts(options: ArtifactsOptions, days: number): Promise<number> {
  const { pool, artifactStore } = options;
  return await runInPages(options, async (batchSize) => {
    const { name, text } = DELETE_ARTIFACTS;
    const rows = await queryRows(pool, DELETED, text, [days, batchSize], name);
    if (rows.length > 0) await artifactStore.delete(rows.map(toKey));
    return rows.length;
  });
}

const DELETED = { account_id: column.digits, run_id: column.digits, object_id: column.text };

function toKey(row: { account_id: string; run_id: string; object_id: string }): ObjectKey {
  return { accountId: Number(row.account_id), runId: Number(row.run_id), objectId: row.object_id };
}

const DELETE_ARTIFACTS = {
  name: 'delete-old-artifacts',
  text: `
    DELETE FROM artifacts WHERE (account_id, run_id, path, step) IN (
      SELECT account_id, run_id, path, step FROM artifacts
      WHERE run_created_at < now() - $1::int * interval '1 day' LIMIT $2)
    RETURNING account_id, run_id, object_id::text AS object_id`,
};

const DELETE_MODELS = {
  name: 'delete-old-run-models',
  text: `
    DELETE FROM run_models WHERE (account_id, run_id, step, position) IN (
      SELECT account_id, run_id, step, position FROM run_models
      WHERE run_created_at < now() - $1::int * interval '1 day' LIMIT $2)
    RETURNING position`,
};
