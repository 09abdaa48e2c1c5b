import type { EventQueue } from '@runhook/queue';
import type { Health, Lifecycle, Logger } from '@runhook/runtime';
import { startPeriodic } from '@runhook/runtime';
import { Gauge, type Registry } from 'prom-client';
import type { StartedWorker } from './worker.ts';
import { createWorkerWatch, WorkerStoppedError } from './worker-watch.ts';

/** With the watch's patience, a worker that takes nothing is known within ten seconds. */
const LOOK_EVERY_MS = 2_000;

export interface WatchedWorker extends Pick<StartedWorker, 'worker' | 'hand'> {
  firstInLine: EventQueue['firstInLine'];
}

/** Health checks and metrics of the workers. A dispatcher that does not work must be neither alive nor ready. */
export function watchWorkers(
  { health, lifecycle, logger, registry }: WatchWorkersProcess,
  workers: readonly WatchedWorker[],
  upkeep: { readonly name: string; isRunning(): boolean },
  concurrency: number,
): void {
  const watches = workers.map((watched) => createWorkerWatch({ ...watched, concurrency }));
  const looks = startPeriodic(
    LOOK_EVERY_MS,
    async () => void (await Promise.all(watches.map((watch) => watch.look()))),
    (error) => logger.debug({ err: error }, 'the queue could not be looked at'),
  );
  // Not waited for: a look that hangs must not hold up the end of the intake.
  lifecycle.onClose('worker watch', () => void looks.stop());

  function check(): void {
    // Stopped on purpose: whoever restarts what is not alive must not cut off what is being finished.
    if (lifecycle.stopping) return;
    for (const watch of watches) watch.check();
    if (!upkeep.isRunning()) throw new WorkerStoppedError('WORKER_STOPPED', `${upkeep.name} is not running`);
  }
  health.register('workers', 'live', check);
  health.register('workers', 'ready', check);
  registerWorkerMetrics(registry, workers, concurrency);
}

interface WatchWorkersProcess {
  health: Health;
  lifecycle: Lifecycle;
  logger: Logger;
  registry: Registry;
}

function registerWorkerMetrics(
  registry: Registry,
  workers: readonly WatchedWorker[],
  concurrency: number,
): void {
  const registers = [registry];
  const labelNames = ['queue'] as const;
  new Gauge({
    name: 'runhook_worker_running',
    help: "Whether the loop of the queue's worker runs in this process.",
    labelNames,
    registers,
    collect() {
      for (const { worker } of workers) this.set({ queue: worker.name }, worker.isRunning() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'runhook_worker_jobs_in_hand',
    help: 'Queue jobs that the worker is working on.',
    labelNames,
    registers,
    collect() {
      for (const { worker, hand } of workers) this.set({ queue: worker.name }, hand.jobs);
    },
  });
  new Gauge({
    name: 'runhook_worker_concurrency',
    help: 'Queue jobs that each worker may have in hand.',
    registers,
  }).set(concurrency);
}
