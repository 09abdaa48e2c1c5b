import type { Worker } from 'bullmq';

interface WorkerLoop {
  /** Promises of the jobs in flight; the loop awaits the next one that ends. Null before the loop runs. */
  mainLoopQueue: { add(ended: Promise<void>): void } | null;
}

/**
 * Returns a function that wakes the loop of a worker, as `resume()` does: between the ends of two jobs the loop does
 * not read the worker's concurrency, so a raised one would have no effect.
 */
export function createWaker<Data>(worker: Worker<Data>): () => void {
  const loop = worker as unknown as WorkerLoop;
  if (loop.mainLoopQueue === undefined)
    throw new Error('this version of BullMQ wakes the loop of a worker in another way');
  return () => loop.mainLoopQueue?.add(Promise.resolve());
}
