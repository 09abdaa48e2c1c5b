import { MAINTENANCE } from '@runhook/contract';
import { waitAtMost } from '@runhook/runtime/timers';
import type { Worker } from 'bullmq';
import type { QueueBackend } from './backends/index.ts';
import { createProducer } from './producer.ts';

export interface MaintenanceTask {
  name: string;
  everyMs: number;
  run: () => Promise<void>;
}

export interface Maintenance {
  worker: Worker;
  /** Waits for running tasks to end. */
  close(): Promise<void>;
}

const LOCK_DURATION_MS = 60_000;
const STALLED_COUNT_MAX = 1_000_000;
const STORED_FAILURES = 20;
const CHECK_EVERY_MS = 10_000;
/** Maximum time that a task waits for the previous one. */
const SERIAL_WAIT_MS = 1_000;

/**
 * Runs tasks on a schedule that all dispatchers share: each run is one job, which one dispatcher takes. Tasks that are
 * due simultaneously run one after another unless one takes long, because concurrently their statements would compete
 * with deliveries for the CPU. The schedule is checked periodically, since flushing the queue's Redis deletes it.
 * @param onError called with the error of a task and its name, or with one of the queue and null; the next run takes
 * place regardless
 */
export function startMaintenance(
  backend: QueueBackend,
  tasks: readonly MaintenanceTask[],
  onError: (error: unknown, task: string | null) => void,
): Maintenance {
  const onQueueError = (error: unknown) => onError(error, null);
  const producer = createProducer<object>(backend, MAINTENANCE, onQueueError);
  const taskByName = new Map(tasks.map((task) => [task.name, task]));
  const running = new Set<string>();
  let previous: Promise<void> = Promise.resolve();
  const worker = backend.createWorker<object>(
    MAINTENANCE,
    async ({ name }) => {
      // A task that takes longer than its period must not occupy the slots of others.
      if (running.has(name)) return;
      running.add(name);
      try {
        previous = waitAtMost(SERIAL_WAIT_MS, previous).then(() => taskByName.get(name)?.run());
        await previous;
      } catch (error) {
        onError(error, name);
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
      removeOnFail: { count: STORED_FAILURES },
    },
  );
  worker.on('error', onQueueError);

  async function ensureSchedules(): Promise<void> {
    for (const { name, everyMs } of tasks) {
      const scheduled = await producer.call((queue) => queue.getJobScheduler(name));
      if (scheduled?.every !== undefined && Number(scheduled.every) === everyMs) continue;
      await producer.call((queue) => queue.upsertJobScheduler(name, { every: everyMs }, { name }));
    }
  }

  const ensureSchedulesSafely = () => ensureSchedules().catch(onQueueError);
  const firstCheck = ensureSchedulesSafely();
  const timer = setInterval(ensureSchedulesSafely, CHECK_EVERY_MS);

  return {
    worker: worker as Worker,
    async close() {
      clearInterval(timer);
      await firstCheck;
      await worker.close();
      await producer.close();
    },
  };
}
