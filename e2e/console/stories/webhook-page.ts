import { expect } from '@jest/globals';
import { startService } from '../../services.ts';
import { describeConsole } from '../support/describe-console.ts';
import {
  chartsOf,
  clickSwitch,
  expectCopied,
  expectFocus,
  findCoveringElements,
} from '../support/page-parts.ts';
import { expectOnPage, recordCalls } from '../support/waiting.ts';
import { sidewaysOverflow } from '../support/watch-page.ts';
import { subscribe, webhookApiOf, webhookPathOf } from '../support/webhooks.ts';

const UNREACHABLE = 'http://127.0.0.1:9/hook';

describeConsole('the page of a webhook', (story) => {
  story('describes the webhook, and explains how to get the first delivery', async (visit) => {
    const { world, page, urlOf, signInAs } = visit;
    const job = world.accounts.enterprise.jobs[1];
    const id = await subscribe(world, {
      name: 'Pager',
      description: 'Wakes somebody up',
      event_types: ['job.run.errored'],
      job_ids: [job?.id],
    });
    await signInAs('ada');
    await page.goto(urlOf(webhookPathOf(world, id)));
    await page.getByRole('heading', { level: 1, name: 'Pager' }).waitFor();
    for (const text of [
      'Wakes somebody up',
      `${world.receiver.url}/hook`,
      'At once when a run fails; metadata and artifacts may not be available yet.',
      'never triggered',
      id,
    ])
      await page.getByText(text, { exact: true }).first().waitFor();
    await page.getByText(job?.name ?? '', { exact: true }).waitFor();
    await page.getByText('No deliveries in the last 24 hours.').waitFor();
    await page.getByText('No deliveries yet').waitFor();
    await page.getByText(`"job_id":${job?.id}`).waitFor();

    await page.getByRole('button', { name: 'Copy the endpoint' }).click();
    await expectCopied(page, `${world.receiver.url}/hook`);
  });

  story('describes the response to a test, and what to check', async (visit) => {
    const { world, page, urlOf, signInAs } = visit;
    const id = await subscribe(world);
    await signInAs('ada');
    await page.goto(urlOf(webhookPathOf(world, id)));
    const test = page.getByRole('button', { name: 'Test Endpoint' }).first();

    world.receiver.respondWith(204);
    await test.click();
    await page.getByText('Your endpoint returned 204 No content').waitFor();
    await page.getByText('It is not logged.').waitFor();

    world.receiver.respondWith(500);
    await test.click();
    await page.getByText('Your endpoint returned 500 Internal server error').waitFor();
    await page.getByText('The endpoint had an internal error.').waitFor();

    world.receiver.respondWith(502);
    await test.click();
    await page.getByText('Your endpoint returned 502 Bad gateway').waitFor();
    await page.getByText('Check that the endpoint itself is up.').waitFor();

    world.receiver.respondWith(200);
    const deaf = await subscribe(world, { client_url: UNREACHABLE });
    await page.goto(urlOf(webhookPathOf(world, deaf)));
    await test.click();
    await page.getByText('Connection refused').waitFor();
    await page.getByText('Check that the server is running, and the port in the address.').waitFor();
    expect(await world.call('ada', 'GET', webhookApiOf(world, deaf, 'deliveries'))).toEqual([]);
  });

  story('reports that the endpoint takes too long to respond to a test', async (visit) => {
    const { world, page, signInAs, ownOrigins } = visit;
    const id = await subscribe(world);
    // A separate service with a short timeout, so that other tests of endpoints are not affected.
    const hasty = await startService('management', { ...world.environment, DELIVERY_TIMEOUT_MS: '1000' });
    ownOrigins.push(hasty.url);
    world.receiver.respondWith({ neverResponds: true });
    try {
      await signInAs('ada');
      await page.goto(hasty.url + webhookPathOf(world, id));
      await page.getByRole('button', { name: 'Test Endpoint' }).first().click();
      await page.getByText('Timed out after 1 s').waitFor();
      await page.getByText('Respond first, then process the event.').waitFor();
    } finally {
      world.receiver.respondWith(200);
      await page.close();
      await hasty.stop();
    }
  });

  story(
    'switches the webhook off and on, and deletes it after a confirmation with its name',
    async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      const id = await subscribe(world, { name: 'Short-lived' });
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      const active = page.getByRole('switch', { name: 'Short-lived is active' });
      await clickSwitch(active);
      await page.getByText('This webhook is switched off').first().waitFor();
      await expectOnPage(async () => {
        const now = await world.call<{ active: boolean }>('ada', 'GET', webhookApiOf(world, id));
        expect(now.active).toBe(false);
      });
      await clickSwitch(active);
      await page.getByText('New events are not delivered.').waitFor({ state: 'detached' });

      await page.getByRole('button', { name: 'Delete' }).click();
      const dialog = page.getByRole('dialog', { name: 'Delete “Short-lived”?' });
      await dialog.getByRole('button', { name: 'Delete the webhook' }).click();
      await page.waitForURL((url) => !url.pathname.includes(id));
      await expect(world.call('ada', 'GET', webhookApiOf(world, id))).rejects.toThrow('404');
      await page.goto(urlOf(webhookPathOf(world, id)));
      await page.getByText('There is no such webhook in this account.').waitFor();
    },
  );

  story(
    'rotates the secret, shows the new one once and the end of the overlap, and finishes the rotation',
    async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      const id = await subscribe(world, { name: 'Rotated' });
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      const rotate = page.getByRole('button', { name: 'Rotate the secret' });
      await rotate.click();
      const dialog = page.getByRole('dialog', { name: 'Rotate the secret?' });
      await dialog.waitFor();
      await page.keyboard.press('Escape');
      await expectFocus(rotate);
      await rotate.click();
      await dialog.getByRole('radio', { name: 'Three days' }).check();
      await dialog.getByRole('button', { name: 'Create a new secret' }).click();
      const shown = page.getByRole('dialog', { name: 'Copy the new secret now: it is shown only once' });
      const secret = (await shown.getByTestId('new-secret').textContent()) ?? '';
      expect(secret).toMatch(/^whsec_/);
      await shown.getByText('The secret has not been copied yet.').waitFor();
      await shown.getByRole('button', { name: 'Copy the new secret' }).click();
      await expectCopied(page, secret);
      await shown.getByText('The secret was copied.').waitFor();
      await shown.getByRole('button', { name: 'Done' }).click();
      await page.getByText('The secret is being rotated').waitFor();
      await page.getByText('in 2 days').waitFor();
      expect(await page.content()).not.toContain(secret);

      await page.getByRole('button', { name: 'Finish now' }).click();
      const finish = page.getByRole('dialog', { name: 'Finish the rotation now?' });
      await finish.getByRole('button', { name: 'Erase the old secret' }).click();
      await page.getByText('The secret is being rotated').waitFor({ state: 'detached' });
      const now = await world.call<object>('ada', 'GET', webhookApiOf(world, id));
      expect(now).not.toHaveProperty('secret_rotation');
    },
  );

  story('shows that the endpoint is failing, since when, and why it was switched off', async (visit) => {
    const { world, page, urlOf, signInAs } = visit;
    const id = await subscribe(world, { name: 'Broken' });
    const change = (data: object) => world.database.prisma.subscription.update({ where: { id }, data });
    await change({ failingSince: new Date(Date.now() - 2_000), consecutiveFailures: 3 });
    await signInAs('ada');
    await page.goto(urlOf(webhookPathOf(world, id)));
    // Three failures in 2 s are not an incident yet, but a slow machine may take longer.
    await page
      .getByText(/^3 attempts in a row failed|^since /)
      .first()
      .waitFor();
    await change({ failingSince: new Date(Date.now() - 7_260_000), consecutiveFailures: 12 });
    const incident = page.getByRole('article', { name: 'Unknown cause' });
    await incident.getByText('since 2 h ago').waitFor();
    await incident.getByText('No delivery has succeeded yet.').waitFor();
    await page.goto(urlOf(webhookPathOf(world, id).replace(`/${id}`, '')));
    await page.getByText('failing since 2 h ago').first().waitFor();
    const reason = 'Its endpoint failed 12 times in a row since 2026-11-22T07:00:00Z.';
    await change({ active: false, deactivateReason: reason });
    await page.goto(urlOf(webhookPathOf(world, id)));
    await page.getByText(`Why: ${reason}`).waitFor();
    await clickSwitch(page.getByRole('switch', { name: 'Broken is active' }));
    await page.getByText('This webhook is switched off').first().waitFor({ state: 'detached' });
    await incident.getByText('Not verified yet').waitFor();
  });

  story('shows everything to a read-only user, with the reason why nothing can be changed', async (visit) => {
    const { world, page, urlOf, signInAs } = visit;
    const id = await subscribe(world, { name: 'Look at me' });
    await signInAs('rita');
    await page.goto(urlOf(webhookPathOf(world, id)));
    await page.getByRole('heading', { level: 1, name: 'Look at me' }).waitFor();
    await page.getByText('You have read-only access').waitFor();
    for (const name of ['Edit', 'Delete', 'Test Endpoint', 'Send what I missed', 'Rotate the secret']) {
      const button = page.getByRole('button', { name }).first();
      expect(await button.getAttribute('aria-disabled')).toBe('true');
      await button.focus();
      await page.getByRole('tooltip').getByText('requires the permission set').waitFor();
    }
    const tests = recordCalls(page, /\/test$/);
    await page.getByRole('button', { name: 'Test Endpoint' }).first().dispatchEvent('click');
    expect(await tests()).toEqual([]);
  });

  story(
    'shows the deliveries of the last day and week as text, by keyboard and as a table, and filters the log by an hour',
    async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      const id = await subscribe(world, { event_types: ['job.run.started'] });
      await world.run();
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      await page.getByText('1 delivery in the last 24 hours: 1 delivered (100%).').waitFor();
      // The bar is the last hour's, unless an hour ended just after the delivery.
      const hours = page.getByRole('group', { name: 'Deliveries per hour' }).getByRole('button');
      await page.getByRole('button', { name: / to \d\d:00: 1 delivered\. / }).focus();
      await page.keyboard.press('ArrowLeft');
      const focused = () => page.evaluate('document.activeElement.getAttribute("aria-label")');
      expect(await focused()).toMatch(/no deliveries\. Show them in the log$/);
      await page.keyboard.press('ArrowRight');
      expect(await focused()).toMatch(/1 delivered\. Show them in the log$/);
      for (const [key, hour] of [
        ['Home', hours.first()],
        ['End', hours.last()],
      ] as const)
        await expectOnPage(async () => {
          await page.keyboard.press(key);
          expect(await focused()).toBe(await hour.getAttribute('aria-label'));
        });

      await page.getByRole('button', { name: 'Show as a table' }).click();
      const table = page.getByRole('table', { name: 'The last 24 hours, newest first' });
      expect(await table.getByRole('row').count()).toBe(25);
      const delivered = await table.locator('tbody td:nth-of-type(1)').allTextContents();
      expect(delivered.filter((count) => count === '1')).toHaveLength(1);

      await page.getByRole('button', { name: / to \d\d:00: 1 delivered\. / }).focus();
      await page.keyboard.press('Enter');
      await expectOnPage(() => expect(new URL(page.url()).searchParams.get('range')).toBe('custom'));
      await expectFocus(page.getByRole('heading', { name: 'Recent Deliveries' }));
      const rows = page.getByRole('table', { name: 'Deliveries, newest first' }).locator('tbody tr');
      await expectOnPage(async () => expect(await rows.count()).toBe(1));
      await hours.first().click();
      await page.getByText('No delivery matches.').waitFor();
      await page.getByText('7 days', { exact: true }).click();
      await page.getByRole('heading', { name: 'Last 7 days' }).waitFor();
      await expectOnPage(async () => expect(await hours.count()).toBe(168));
    },
  );

  story(
    'shows the first row of the log without scrolling on a laptop',
    async ({ world, page, urlOf, signInAs }) => {
      const id = await subscribe(world, {
        description: 'What somebody wrote down for their colleagues.',
        event_types: ['job.run.started'],
      });
      await world.run();
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      const row = page.getByRole('table', { name: 'Deliveries, newest first' }).locator('tbody tr').first();
      await row.waitFor();
      await page.getByRole('group', { name: 'Deliveries per hour' }).waitFor();
      const { y, height } = (await row.boundingBox()) ?? { y: Number.NaN, height: 0 };
      expect(y + height).toBeLessThan(900);
      expect(await findCoveringElements(row)).toEqual([]);
    },
    { viewport: { width: 1440, height: 900 } },
  );

  story(
    'fits the width of a phone without scrolling sideways',
    async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      const id = await subscribe(world, {
        name: 'AVeryLongNameWithoutAnySpaces'.repeat(4),
        client_url: `${world.receiver.url}/${'long/'.repeat(60)}`,
      });
      await world.run('errored');
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      await page
        .getByRole('list', { name: 'Deliveries, newest first' })
        .getByText('Delivered')
        .first()
        .waitFor();
      expect(await sidewaysOverflow(page)).toEqual([]);
      await chartsOf(page);
      await page.getByRole('button', { name: 'Send what I missed' }).click();
      await page.getByRole('dialog').getByLabel('Since').waitFor();
      expect(await sidewaysOverflow(page)).toEqual([]);
    },
    { viewport: { width: 390, height: 844 } },
  );
});
