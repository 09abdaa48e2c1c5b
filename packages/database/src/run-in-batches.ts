import type { Queryable } from './open-database.ts';
import { runStatement } from './statements.ts';

export interface BatchOptions {
  /** Ends the pass after the current batch. */
  stopping?: AbortSignal | undefined;
  /** Rows of one statement; 1,000 when omitted, so that no statement holds its locks for long. */
  batchSize?: number | undefined;
  /** Milliseconds after which no further batch begins; 5 minutes when omitted. The next pass continues. */
  passMaxMs?: number | undefined;
}

const BATCH_SIZE = 1_000;
const PASS_MAX_MS = 300_000;

/**
 * Repeats a statement that returns one row for each row it changes, until a batch is not full. The statement gets the
 * values and, as its last parameter, the size of a batch.
 * @returns the number of rows
 */
export async function runInBatches(
  database: Queryable,
  { text, values, name }: { text: string; values: readonly unknown[]; name: string },
  options: BatchOptions = {},
): Promise<number> {
  return await runInPages(
    options,
    async (batchSize) => (await runStatement(database, text, [...values, batchSize], name)).length,
  );
}

/**
 * Repeats work on a batch of rows until a batch is not full.
 * @param work changes up to `batchSize` rows and returns their number
 * @returns the number of rows
 */
export async function runInPages(
  { stopping, batchSize = BATCH_SIZE, passMaxMs = PASS_MAX_MS }: BatchOptions,
  work: (batchSize: number) => Promise<number>,
): Promise<number> {
  const endsAt = performance.now() + passMaxMs;
  for (let count = 0; ; ) {
    const changed = await work(batchSize);
    count += changed;
    if (changed < batchSize || stopping?.aborted || performance.now() >= endsAt) return count;
  }
}
