/**
 * The features of webhooks that a dispatcher supports, as a number that rises with each release that adds some: 1 supports
 * the delivery options. The workers of `webhook-deliveries` have it in their name, which the queue's server shows in its
 * list of clients for as long as the dispatcher is connected. A worker without a name has level 0.
 */
export const DISPATCHER_LEVEL = 1;

const NAME = /^level-(\d{1,4})$/;

/** Name of the workers of this release. */
export const DISPATCHER_WORKER_NAME = `level-${DISPATCHER_LEVEL}`;

export function dispatcherLevelOf(workerName: string): number {
  return Number(NAME.exec(workerName)?.[1] ?? 0);
}
