import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually, exampleEvent, oneQueueBackend } from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { attemptsOf, deliveriesOf } from './log-rows.ts';

describe.each(oneQueueBackend())('a 410 with the queue on $name', (backend) => {
  let harness: Harness;
  let id: string;
  beforeEach(async () => {
    harness = await openHarness(backend);
    ({ id } = await harness.subscribe('/hook'));
    await update({ deactivateOn410: true });
  });
  afterEach(() => harness.close());

  const update = (data: object) => harness.database.prisma.subscription.update({ where: { id }, data });
  const subscription = () => harness.database.prisma.subscription.findUniqueOrThrow({ where: { id } });
  const publish = () =>
    harness.publisher.publish(exampleEvent('job.run.errored', harness.account.jobs[0] as never));
  const ended = (status: string) =>
    eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows).toMatchObject([{ status }]);
      return rows[0];
    });

  test('deactivates a webhook that wants it, at once and with the reason, and ends the retries', async () => {
    harness.receiver.respondWith(410);
    await harness.startDispatcher();
    await publish();
    const delivery = await ended('failed');
    expect(delivery).toMatchObject({ attempt_count: 1, http_status_code: 410 });
    expect(delivery?.reason).toContain('The endpoint responded with 410 (Gone).');
    expect(await subscription()).toMatchObject({
      active: false,
      deactivateReason: 'The endpoint responded with 410 (Gone).',
    });
    await eventually(async () => expect(await subscription()).toMatchObject({ consecutiveFailures: 1 }));
    const { rows } = await harness.database.pool.query(
      `SELECT actor_kind FROM audit_entries WHERE target_id = $1 AND action = 'webhook.deactivated'`,
      [id],
    );
    expect(rows).toEqual([{ actor_kind: 'service' }]);
  });

  test('is retried by a webhook that does not want it', async () => {
    await update({ deactivateOn410: false });
    harness.receiver.respondWith((_request, index) => ({ status: index === 0 ? 410 : 200 }));
    await harness.startDispatcher();
    await publish();
    expect(await ended('delivered')).toMatchObject({ attempt_count: 2 });
  });

  test.each([
    ['activated again', async () => void [await update({ active: false }), await update({ active: true })]],
    ['given another address', async () => void (await update({ clientUrl: `${harness.receiver.url}/new` }))],
  ])(
    'does not deactivate a webhook that was %s during the attempt, and is retried',
    async (_case, change) => {
      harness.receiver.respondWith(async (_request, index) => {
        if (index > 0) return { status: 200 };
        await change();
        return { status: 410 };
      });
      await harness.startDispatcher();
      await publish();
      const delivery = await ended('delivered');
      expect(await attemptsOf(harness.database, delivery?.id ?? '')).toMatchObject([
        { http_status_code: 410 },
        { http_status_code: 200 },
      ]);
      expect(await subscription()).toMatchObject({ active: true, deactivateReason: null });
    },
  );
});
