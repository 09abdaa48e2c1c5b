import { setTimeout as wait } from 'node:timers/promises';
import { isDatabaseUnavailable, openDatabase, runStatement } from '@runhook/database';

const FIRST_PAUSE_MS = 100;
const PAUSE_MAX_MS = 2_000;

/**
 * Resolves once the database answers. One that is not there or still starting is asked again until the deadline; what
 * it refuses (a wrong password, an unknown database) is thrown at once, since waiting changes nothing about it.
 * @param onWait told of every attempt that has to be repeated
 */
export async function waitForDatabase(
  url: string,
  { waitMs, onWait }: { waitMs: number; onWait: (error: unknown) => void },
): Promise<void> {
  const deadline = performance.now() + waitMs;
  const database = openDatabase({ url, connectionsMax: 1 });
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      try {
        await runStatement(database.pool, 'SELECT 1', []);
        return;
      } catch (error) {
        if (!isDatabaseUnavailable(error) || performance.now() + pauseMs > deadline) throw error;
        onWait(error);
      }
      await wait(pauseMs);
    }
  } finally {
    await database.close();
  }
}
