import { expect } from '@jest/globals';
import { seedSubscription, seedSubscriptions } from '@runhook/testing';
import { ELEMENT_TIMEOUT_MS, expectOnPage } from '../support/waiting.ts';
import type { World } from '../support/world.ts';

/** Ids of the objects on the pages, set by `prepareWorld`. */
export const ids = { webhook: '', failed: '', delivered: '', run: '' };

/** Adds webhooks, one of which has a successful delivery and a failed one. */
export async function prepareWorld(world: World): Promise<void> {
  const { database, accounts, receiver } = world;
  const accountId = accounts.enterprise.id;
  await seedSubscriptions(database.pool, { accountId, count: 12 });
  await database.prisma.subscription.updateMany({ where: { accountId }, data: { active: false } });
  const checkedWebhook = await seedSubscription(database, {
    accountId,
    name: 'Walked',
    clientUrl: `${receiver.url}/hook`,
    eventTypes: ['job.run.completed'],
  });
  ids.webhook = checkedWebhook.id;
  const deliveries = () =>
    world.call<{ id: string; status: string }[]>(
      'ada',
      'GET',
      `/v3/accounts/${accountId}/webhooks/subscription/${checkedWebhook.id}/deliveries`,
    );
  await world.run();
  await receiver.waitFor(1, { timeoutMs: ELEMENT_TIMEOUT_MS });
  receiver.respondWith({ status: 500, body: '{"problem": "the endpoint is out of order"}' });
  ids.run = String(await world.run());
  const findEnded = await expectOnPage(async () => {
    const found = await deliveries();
    expect(found.map(({ status }) => status).sort()).toEqual(['delivered', 'failed']);
    return found;
  });
  for (const { id, status } of findEnded) ids[status as 'failed' | 'delivered'] = id;
  // This duration makes an incident, on the list and on the webhook's page.
  await database.prisma.subscription.update({
    where: { id: checkedWebhook.id },
    data: { failingSince: new Date(Date.now() - 7_200_000), consecutiveFailures: 12 },
  });
}
