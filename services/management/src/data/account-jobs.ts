import { type Database, runStatement } from '@runhook/database';

/** Those of the ids that are not jobs of the account, in the order given. */
export async function missingJobIds(
  pool: Database['pool'],
  accountId: number,
  jobIds: readonly number[],
): Promise<number[]> {
  if (jobIds.length === 0) return [];
  const rows = await runStatement<{ id: string }>(
    pool,
    'SELECT id::text FROM jobs WHERE account_id = $1 AND id = ANY($2::bigint[])',
    [accountId, jobIds],
  );
  const found = new Set(rows.map((row) => Number(row.id)));
  return jobIds.filter((id) => !found.has(id));
}
