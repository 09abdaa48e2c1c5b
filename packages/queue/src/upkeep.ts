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
  /** Lets a running task end. */
  close(): Promise<void>;
}

const LOCK_DURATION_MS = 60_000;
const STALLED_COUNT_MAX = 1_000_000;
const KEPT_FAILURES = 20;
const LOOK_EVERY_MS = 10_000;
/** So long a task waits for the one that came before it. */
const TURN_MS = 1_000;

/**
 * Runs tasks on a schedule that all dispatchers share: each time is one job, which one of them takes. Those of one moment go one
 * after another, unless one takes long: side by side their statements would have the processors that deliveries want. The
 * schedule is looked after for as long as this runs, since whoever flushes the queue's Redis flushes the schedule too.
 * @param onError told of trouble with the queue and of tasks that failed; the next time comes all the same
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
      // One that takes longer than its period must not take the others' turns as well.
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
