import { once } from 'node:events';
import { withinDeadline } from '@runhook/runtime/timers';
import type { Worker } from 'bullmq';
import { Cluster, Redis } from 'ioredis';

/** Beyond what a wait was to take: BullMQ itself gives a command up after a second, and connects anew. */
const MARGIN_MS = 10_000;

/** What has nodes left tells its end at once. */
const END_MS = 1_000;

/**
 * The same worker, whose waits for a job end. BullMQ gives up a blocking command that nobody answers, and then awaits the end of
 * its connection and the making of the next without a bound. After a failover of a cluster the loop of a worker stood for good
 * now and then, with no command open (docs/reliability.md#failover): it had been in one of these waits, as far as is known.
 */
export function withEndingWaits<Data>(worker: Worker<Data>, marginMs = MARGIN_MS): Worker<Data> {
  const backend = worker.getBackend();
  const wait = backend.waitForJob.bind(backend);
  const reconnect = backend.reconnectBlocking.bind(backend);
  const disconnect = backend.disconnectBlocking.bind(backend);
  backend.waitForJob = (seconds) => withinDeadline(seconds * 1_000 + marginMs, () => wait(seconds));
  backend.reconnectBlocking = async () => {
    try {
      await withinDeadline(marginMs, reconnect);
    } catch (error) {
      await revive(await backend.blockingClient, marginMs);
      throw error;
    }
  };
  backend.disconnectBlocking = async (wait) => {
    const client = await backend.blockingClient;
    // Closing a worker waits for the end of this client. While it is about to reconnect, ioredis only cancels the reconnection and reports
    // no end. It reports one when a connection attempt is cancelled.
    if (client instanceof Redis && client.status === 'reconnecting') client.connect().catch(() => undefined);
    await disconnect(wait);
  };
  return worker;
}

/** A client that is on its way to nowhere begins anew; its status says of one that is well that there is nothing to do. */
async function revive(client: unknown, withinMs: number): Promise<void> {
  if (!(client instanceof Cluster) || client.status === 'ready' || client.status === 'connect') return;
  const ended = once(client, 'end', { signal: AbortSignal.timeout(END_MS) });
  client.disconnect();
  await ended.catch(() => undefined);
  await withinDeadline(withinMs, () => client.connect());
}
