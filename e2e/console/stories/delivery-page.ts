import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { promisify } from 'node:util';
import { expect } from '@jest/globals';
import { describeConsole, type Visit } from '../support/describe-console.ts';
import { expectCopied } from '../support/page-parts.ts';
import { createPendingResponse, expectOnPage } from '../support/waiting.ts';
import { sidewaysOverflow } from '../support/watch-page.ts';
import { subscribe, webhookApiOf, webhookPathOf } from '../support/webhooks.ts';

interface Delivery {
  id: string;
  status: string;
  attempt_count: number;
  payload: string;
}

const RESPONSE_BODY = 'Traceback: KeyError in hook.py';

/** Creates a webhook and a run that makes one delivery, and waits until the delivery has the expected state. */
async function delivered({ world }: Visit, expected: Partial<Delivery>, fields: object = {}) {
  const webhookId = await subscribe(world, { event_types: ['job.run.started'], ...fields });
  await world.run();
  const path = webhookApiOf(world, webhookId, 'deliveries');
  const delivery = await expectOnPage(async () => {
    const [found] = await world.call<Delivery[]>('ada', 'GET', path);
    expect(found).toMatchObject(expected);
    return found as Delivery;
  });
  return { webhookId, delivery, path: `${webhookPathOf(world, webhookId)}/deliveries/${delivery.id}` };
}

describeConsole('the page of a delivery', (story) => {
  story('shows every attempt with its request and response, and resends the delivery', async (visit) => {
    const { world, page, urlOf, signInAs } = visit;
    world.receiver.respondWith({ status: 500, headers: { 'x-worker': 'seven' }, body: RESPONSE_BODY });
    const { path } = await delivered(visit, { status: 'failed', attempt_count: 6 });
    await signInAs('ada');
    await page.goto(urlOf(path));
    await page.getByRole('heading', { level: 1, name: /^Run started, run \d+$/ }).waitFor();
    await page.getByText('All 6 attempts failed. Last: The endpoint responded with 500.').waitFor();
    const attempts = page.getByRole('list', { name: 'Attempts, newest first' }).getByRole('listitem');
    expect(await attempts.count()).toBe(6);
    const last = attempts.first();
    for (const text of [
      'Attempt 6',
      '500 Internal server error',
      'automatic',
      'The endpoint had an internal error.',
    ])
      await last.getByText(text).first().waitFor();
    await last.getByText(RESPONSE_BODY).waitFor();
    await last.getByText('x-worker: seven').waitFor();
    await last.getByText('authorization: ***').waitFor();
    const first = attempts.last();
    expect(await first.getByText(RESPONSE_BODY).count()).toBe(0);
    await first.getByRole('button', { name: 'Request and response of attempt 1' }).click();
    await first.getByText(RESPONSE_BODY).waitFor();

    const release = createPendingResponse();
    world.receiver.respondWith(async () => ({ status: await release.status }));
    await page.getByRole('button', { name: 'Redeliver' }).click();
    await page.getByText('Retrying').first().waitFor();
    const redeliver = page.getByRole('button', { name: 'Redeliver' });
    expect(await redeliver.getAttribute('aria-disabled')).toBe('true');
    await redeliver.focus();
    await page.getByRole('tooltip').getByText('This delivery is still pending.').waitFor();
    release.respond(200);
    await attempts.first().getByRole('heading', { name: 'Attempt 7' }).waitFor();
    await attempts.first().getByText('resent manually').waitFor();
    // A new attempt is collapsed, so that it does not move the content.
    const exchange = attempts.first().getByRole('button', { name: 'Request and response of attempt 7' });
    expect(await exchange.getAttribute('aria-expanded')).toBe('false');
    await page.getByText('Delivered after 7 attempts.').waitFor();
    world.receiver.respondWith(200);
  });

  story('is live while the delivery is pending, and shows when the next attempt is due', async (visit) => {
    const { world, page, urlOf, signInAs } = visit;
    world.receiver.respondWith({ status: 503, headers: { 'retry-after': '600' }, body: 'busy' });
    const { path, webhookId } = await delivered(visit, { status: 'pending', attempt_count: 1 });
    await signInAs('ada');
    await page.goto(urlOf(path));
    await page
      .getByText(/1 attempt failed so far\. Waiting for .* the pause that its endpoint requested\./)
      .waitFor();
    const { delivery } = await currentDelivery(visit, webhookId);
    await world.database.pool.query(
      `UPDATE deliveries SET deferred_at = NULL, next_attempt_at = now() + interval '10 minutes' WHERE id = $1`,
      [delivery.id],
    );
    await page.getByText(/Attempt 2 in \d+ min \d+ s/).waitFor();
    await world.database.pool.query(
      `UPDATE deliveries SET status = 'cancelled', reason = 'The subscription is inactive.', completed_at = now(),
         next_attempt_at = NULL WHERE id = $1`,
      [delivery.id],
    );
    await page.getByText('Cancelled before it could be delivered. The subscription is inactive.').waitFor();
    world.receiver.respondWith(200);
  });

  story(
    'formats a JSON response and copies it unchanged, and does not show a binary response',
    async (visit) => {
      const { page, urlOf, signInAs, world } = visit;
      const responseBody = '{"error":"no_text","hint":{"field":"text"}}';
      world.receiver.respondWith({ status: 200, body: responseBody });
      const { path } = await delivered(visit, { status: 'delivered' });
      await signInAs('ada');
      await page.goto(urlOf(path));
      const body = page.getByRole('region', { name: 'Response body of attempt 1' });
      expect(await body.textContent()).toBe(JSON.stringify(JSON.parse(responseBody), null, 2));
      await page.getByRole('button', { name: 'Copy Response body of attempt 1' }).click();
      await expectCopied(page, responseBody);
      const image = Buffer.from(Array.from({ length: 64 }, (_, index) => 0x80 + index));
      world.receiver.respondWith({ status: 200, body: image });
      const other = await delivered(visit, { status: 'delivered' });
      await page.goto(urlOf(other.path));
      await page.getByText('Binary response (not shown)').waitFor();
      world.receiver.respondWith(200);
    },
  );

  story('formats the payload, and copies its exact bytes', async (visit) => {
    const { page, urlOf, signInAs, world } = visit;
    const { path, webhookId } = await delivered(visit, { status: 'delivered' }, { name: 'Ada’s "hook"' });
    const { delivery } = await currentDelivery(visit, webhookId);
    await signInAs('rita');
    await page.goto(urlOf(path));
    const payload = page.getByRole('region', { name: 'Request body' });
    expect(await payload.textContent()).toBe(JSON.stringify(JSON.parse(delivery.payload), null, 2));
    await page.getByRole('button', { name: 'Copy Request body' }).click();
    await expectCopied(page, delivery.payload);
    const sent = world.receiver.requests.map(({ body }) => body.toString());
    expect(sent).toContain(delivery.payload);
    expect(await page.getByRole('button', { name: 'Redeliver' }).getAttribute('aria-disabled')).toBe('true');
  });

  story('copies a curl command that the endpoint accepts, including the signature', async (visit) => {
    const { page, urlOf, signInAs, world } = visit;
    const { path, webhookId } = await delivered(visit, { status: 'delivered' }, { name: "It's" });
    await signInAs('ada');
    await page.goto(urlOf(path));
    await page.getByRole('button', { name: /^Copy as curl/ }).click();
    const command = await expectCopied(page, /curl --include/);
    const { delivery } = await currentDelivery(visit, webhookId);
    await promisify(execFile)('sh', ['-c', command], {
      env: { PATH: process.env.PATH, HMAC_SECRET: 'whsec_test' },
    });
    const expected = createHmac('sha256', 'whsec_test').update(delivery.payload).digest('hex');
    const request = world.receiver.requests.find(({ headers }) => headers.authorization === expected);
    expect(request?.body.toString()).toBe(delivery.payload);
  });

  story('shows the reason of a rejected redelivery', async (visit) => {
    const { page, urlOf, signInAs, world } = visit;
    const { path, webhookId } = await delivered(visit, { status: 'delivered' });
    await signInAs('ada');
    await page.goto(urlOf(path));
    const redeliver = page.getByRole('button', { name: 'Redeliver' });
    // Deactivates the webhook during the call: the page would disable the button as soon as it learns of it.
    await page.route('**/redeliver', async (route) => {
      const subscription = await world.call<object>('ada', 'GET', webhookApiOf(world, webhookId));
      await world.call('ada', 'PUT', webhookApiOf(world, webhookId), { ...subscription, active: false });
      await route.continue();
    });
    await redeliver.click();
    await page
      .getByRole('alert')
      .getByText('The webhook is inactive: activate it to deliver again.')
      .waitFor();
    await expectOnPage(async () => expect(await redeliver.getAttribute('aria-disabled')).toBe('true'));
  });

  story('reports a missing delivery, and one that cannot be loaded, with a retry button', async (visit) => {
    const { page, urlOf, signInAs, world } = visit;
    const { path, webhookId } = await delivered(visit, { status: 'delivered' });
    await signInAs('ada');
    await page.goto(urlOf(`${webhookPathOf(world, webhookId)}/deliveries/none`));
    await page.getByText('There is no such delivery.').waitFor();
    await page.route('**/delivery/*', (route) => route.abort());
    await page.goto(urlOf(path));
    await page.getByRole('alert').getByText('The delivery could not be loaded').waitFor();
    await page.unroute('**/delivery/*');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Delivered on the first attempt.').waitFor();
  });

  story(
    'fits the width of a phone without scrolling sideways',
    async (visit) => {
      const { page, urlOf, signInAs, world } = visit;
      world.receiver.respondWith({
        status: 200,
        headers: { 'x-long': 'y'.repeat(500) },
        body: 'z'.repeat(900),
      });
      const { path } = await delivered(visit, { status: 'delivered' });
      world.receiver.respondWith(200);
      await signInAs('ada');
      await page.goto(urlOf(path));
      await page.getByText('Delivered on the first attempt.').waitFor();
      expect(await sidewaysOverflow(page)).toEqual([]);
    },
    { viewport: { width: 390, height: 844 } },
  );
});

async function currentDelivery({ world }: Visit, webhookId: string): Promise<{ delivery: Delivery }> {
  const [row] = await world.call<Delivery[]>('ada', 'GET', webhookApiOf(world, webhookId, 'deliveries'));
  const path = webhookApiOf(world, webhookId, `delivery/${row?.id}`);
  return { delivery: await world.call<Delivery>('ada', 'GET', path) };
}
