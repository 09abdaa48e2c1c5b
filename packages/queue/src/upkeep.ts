import { UPKEEP } from '@runhook/contract';
import { endedWithin } from '@runhook/runtime/timers';
import type { Worker } from 'bullmq';
import type { QueueBackend } from './backends/index.ts';
import { createProducer } from './producer.ts';

export interface UpkeepTask {
  name: string;
  everyMs: number;
  run: () => Promise<void>;
}

export interface Upkeep {
  worker: Worker;
  /** Waits for running tasks to end. */
  close(): Promise<void>;
}

const LOCK_DURATION_MS = 60_000;
const STALLED_COUNT_MAX = 1_000_000;
const KEPT_FAILURES = 20;
const LOOK_EVERY_MS = 10_000;
/** Maximum time that a task waits for the previous one. */
const TURN_MS = 1_000;

/**
 * Runs tasks on a schedule that all dispatchers share: each run is one job, which one dispatcher takes. Tasks that are
 * due simultaneously run one after another unless one takes long, because concurrently their statements would compete
 * with deliveries for the CPU. The schedule is checked periodically, since flushing the queue's Redis deletes it.
 * @param onError called with errors of the queue and of failed tasks; the next run takes place regardless
 */
export function startUpkeep(
  backend: QueueBackend,
  tasks: readonly UpkeepTask[],
  onError: (error: unknown) => void,
): Upkeep {
  const producer = createProducer<object>(backend, UPKEEP, onError);
  const taskByName = new Map(tasks.map((task) => [task.name, task]));
  const running = new Set<string>();
  let last: Promise<void> = Promise.resolve();
  const worker = backend.createWorker<object>(
    UPKEEP,
    async ({ name }) => {
      // A task that takes longer than its period must not occupy the slots of others.
      if (running.has(name)) return;
      running.add(name);
      try {
        last = endedWithin(TURN_MS, last).then(() => taskByName.get(name)?.run());
        await last;
      } catch (error) {
        onError(error);
        throw error;
      } finally {
        running.delete(name);
      }
    },
    {
      concurrency: tasks.length,
      lockDuration: LOCK_DURATION_MS,
      maxStalledCount: STALLED_COUNT_MAX,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: KEPT_FAILURES },
    },
  );
  worker.on('error', onError);

  async function ensureSchedules(): Promise<void> {
    for (const { name, everyMs } of tasks) {
      const known = await producer.call((queue) => queue.getJobScheduler(name));
      if (known?.every !== undefined && Number(known.every) === everyMs) continue;
      await producer.call((queue) => queue.upsertJobScheduler(name, { every: everyMs }, { name }));
    }
  }

  const look = () => ensureSchedules().catch(onError);
  const firstLook = look();
  const timer = setInterval(look, LOOK_EVERY_MS);

  return {
    worker: worker as Worker,
    async close() {
      clearInterval(timer);
      await firstLook;
      await worker.close();
      await producer.close();
    },
  };
}
