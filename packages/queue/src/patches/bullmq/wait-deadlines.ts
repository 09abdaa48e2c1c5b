import { once } from 'node:events';
import { withinDeadline } from '@runhook/runtime/timers';
import type { Worker } from 'bullmq';
import { Cluster, Redis } from 'ioredis';

/** Margin beyond the timeout of a wait. BullMQ itself abandons a wait one second after its timeout, and reconnects. */
const MARGIN_MS = 10_000;

/** Timeout for the end of a client. One without connected nodes reports its end at once. */
const END_MS = 1_000;

/**
 * Returns the same worker with deadlines for its waits. BullMQ abandons a blocking command that gets no reply, and then
 * awaits the end of its connection and the creation of the next one without a limit. After a failover of a cluster the
 * loop of a worker occasionally stopped permanently, with no command open (docs/reliability.md#failover), presumably in
 * one of these waits.
 */
export function withWaitDeadlines<Data>(worker: Worker<Data>, marginMs = MARGIN_MS): Worker<Data> {
  const backend = worker.getBackend();
  const wait = backend.waitForJob.bind(backend);
  const reconnect = backend.reconnectBlocking.bind(backend);
  const disconnect = backend.disconnectBlocking.bind(backend);
  backend.waitForJob = (seconds) => withinDeadline(seconds * 1_000 + marginMs, () => wait(seconds));
  backend.reconnectBlocking = async () => {
    try {
      await withinDeadline(marginMs, reconnect);
    } catch (error) {
      await reconnectCluster(await backend.blockingClient, marginMs);
      throw error;
    }
  };
  backend.disconnectBlocking = async (wait) => {
    const client = await backend.blockingClient;
    // Closing a worker waits for the end of this client. While it is about to reconnect, ioredis only cancels the
    // reconnection and reports no end. It reports one when a connection attempt is cancelled.
    if (client instanceof Redis && client.status === 'reconnecting') client.connect().catch(() => undefined);
    await disconnect(wait);
  };
  return worker;
}

/** Reconnects a cluster client that is stuck. One that is connected is left unchanged. */
async function reconnectCluster(client: unknown, withinMs: number): Promise<void> {
  if (!(client instanceof Cluster) || client.status === 'ready' || client.status === 'connect') return;
  const ended = once(client, 'end', { signal: AbortSignal.timeout(END_MS) });
  client.disconnect();
  await ended.catch(() => undefined);
  await withinDeadline(withinMs, () => client.connect());
}
