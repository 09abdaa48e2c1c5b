import { JOB_RUN_EVENTS, shardPrefix } from '@runhook/contract';
import { isItemFault } from '@runhook/database';
import { createEventPublisher } from '@runhook/publisher';
import { createQueueBackend } from '@runhook/queue';
import { eventually } from '@runhook/testing';
import { ODD_MESSAGES, type OddJson } from './poison-texts.ts';
import type { PoisonedEvents } from './poisoned-events.ts';
import type { Stores } from './servers.ts';
import type { World as WorldOn } from './world.ts';

type World = WorldOn<Stores>;
type Queue = ReturnType<ReturnType<typeof createQueueBackend>['createQueue']>;

interface RedisClient {
  hset(key: string, field: string, value: string): Promise<number>;
}

/** Publishes with the package for Node. Returns how many events were accepted. */
export async function publish({ servers }: World, events: PoisonedEvents): Promise<number> {
  const publisher = createEventPublisher({ queueUrl: servers.queueUrl });
  try {
    const published = events.withTexts();
    // On a busy machine a connection may exceed the timeout of a call. Events have ids, so a repeat changes nothing.
    return (await eventually(() => publisher.publishMany(published))).length;
  } finally {
    await publisher.close();
  }
}

/** Adds jobs as a foreign publisher does. Returns how many were accepted: PostgreSQL rejects some of them in this call. */
export async function addJobs(world: World, events: PoisonedEvents): Promise<number> {
  return await withQueue(world, async (queue) => {
    let accepted = 0;
    for (const event of events.withTexts())
      accepted += (await eventually(() => wasAdded(queue.add(event.eventType, event)))) ? 1 : 0;
    return accepted;
  });
}

/** Adds jobs whose data is JSON that the libraries of the queue do not write. Returns how many are valid events. */
export async function addOddJobs(world: World, events: PoisonedEvents): Promise<number> {
  return await withQueue(world, async (queue) => {
    let accepted = 0;
    for (const odd of ODD_MESSAGES) accepted += (await addOddJob(world, queue, events, odd)) ? 1 : 0;
    return accepted;
  });
}

/** Replaces the data of a job before a worker can take it. Returns whether it was added and is a valid event. */
async function addOddJob(world: World, queue: Queue, events: PoisonedEvents, odd: OddJson): Promise<boolean> {
  const jobId = `odd-${events.accountId}-${events.next().runId}`;
  const job = await queue.add('odd', {}, { jobId, delay: 3_600_000 });
  if (!(await wasAdded(writeData(world, queue, jobId, events.withOddJson(odd))))) {
    await job.remove();
    return false;
  }
  await job.promote();
  return odd.isEvent;
}

async function withQueue<T>({ servers }: World, work: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = createQueueBackend(servers.queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
  try {
    return await work(queue);
  } finally {
    await queue.close();
  }
}

async function writeData(world: World, queue: Queue, jobId: string, json: string): Promise<void> {
  if (world.backend === 'PostgreSQL') {
    const statement = 'UPDATE bullmq.job SET data = $1 WHERE queue = $2 AND id = $3';
    await world.database.pool.query(statement, [json, JOB_RUN_EVENTS, jobId]);
    return;
  }
  const { client } = queue.getBackend() as unknown as { client: Promise<RedisClient> };
  await (await client).hset(`${shardPrefix(0)}:${JOB_RUN_EVENTS}:${jobId}`, 'data', json);
}

/** Returns false if PostgreSQL rejects the job for its data. Rejects if the queue is unreachable. */
async function wasAdded(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (isItemFault(error)) return false;
    throw error;
  }
}
