import type { DeliveryQueue } from '@runhook/queue';
import { ConflictError } from '../http/errors.ts';

/**
 * Throws a 409 while a dispatcher of an older release is connected to the queue: it would ignore what the request sets,
 * and send, for example, the payload of job run events to a target that rejects it.
 * @param features names of what the request sets
 */
export async function requireDispatchersSupport(
  queue: Pick<DeliveryQueue, 'hasOlderDispatcher'>,
  features: readonly string[],
): Promise<void> {
  if (!(await queue.hasOlderDispatcher())) return;
  throw new ConflictError(
    `A dispatcher of an older release is running, which does not support ${features.join(', ')}. Update all dispatchers, then try again.`,
  );
}

/** Returns the name of a feature if the request removes the endpoint, to which older dispatchers would send. */
export function newlyWithoutEndpoint(clientUrl: string, stored: { clientUrl: string } | null): string[] {
  return clientUrl === '' && stored?.clientUrl !== '' ? ['an empty client_url'] : [];
}
