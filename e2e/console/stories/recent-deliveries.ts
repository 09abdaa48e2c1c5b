import { expect } from '@jest/globals';
import { seedDeliveries } from '@runhook/testing';
import type { Page } from 'playwright-core';
import { describeConsole } from '../support/describe-console.ts';
import { chartsOf, expectFocus } from '../support/page-parts.ts';
import { createPendingResponse, expectOnPage, recordCalls } from '../support/waiting.ts';
import { subscribe, webhookApiOf, webhookPathOf } from '../support/webhooks.ts';

const SEEDED_DELIVERIES = 4_000;
const LOG_DAYS = 2;

let longLog = '';

const rowsOf = (page: Page) => page.getByRole('table', { name: 'Deliveries, newest first' }).getByRole('row');
const linksOf = (page: Page) =>
  page.getByRole('table', { name: 'Deliveries, newest first' }).getByRole('link');
/** Returns the runs of the visible rows, from first to last. */
const runsOf = async (page: Page) =>
  (await linksOf(page).allTextContents()).map((text) => /run (\d+)/.exec(text)?.[1]);

describeConsole(
  'the list "Recent Deliveries" of a webhook',
  (story) => {
    story('shows a new delivery without a reload, and updates it when it is delivered', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      const id = await subscribe(world, { event_types: ['job.run.started'] });
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      await page.getByText('No deliveries yet').waitFor();
      const release = createPendingResponse();
      world.receiver.respondWith(async () => ({ status: await release.status }));
      const run = await world.run();
      const row = rowsOf(page).filter({ hasText: String(run) });
      await row.getByText('Pending', { exact: true }).waitFor();
      await row.getByText('not sent yet').waitFor();
      release.respond(200);
      await row.getByText('Delivered', { exact: true }).waitFor();
      await row.getByText('200 OK').waitFor();

      await world.run();
      await expectOnPage(async () => expect(await rowsOf(page).count()).toBe(3));
      await page.getByRole('status').filter({ hasText: '1 new delivery' }).waitFor({ state: 'attached' });
      world.receiver.respondWith(200);
    });

    story(
      'makes no requests without changes, and shows changes',
      async (visit) => {
        const { world, page, urlOf, signInAs } = visit;
        const id = await subscribe(world, { event_types: ['job.run.started'] });
        await signInAs('ada');
        await page.clock.install();
        const listening = page.waitForResponse(/\/webhooks\/changes\?subscription_id=/);
        await page.goto(urlOf(webhookPathOf(world, id)));
        expect((await listening).status()).toBe(200);
        await page.getByText('No deliveries yet').waitFor();
        await page.waitForLoadState('domcontentloaded');
        const listCalls = recordCalls(page, /\/api\//);
        await expectOnPage(async () => {
          const before = (await listCalls()).length;
          await page.clock.runFor(60_000);
          expect((await listCalls()).length).toBe(before);
        });
        const before = (await listCalls()).length;
        await page.clock.runFor(600_000);
        expect((await listCalls()).slice(before)).toEqual([]);

        const run = await world.run();
        await rowsOf(page)
          .filter({ hasText: String(run) })
          .getByText('Delivered', { exact: true })
          .waitFor();
      },
      { context: {} },
    );

    story('polls if the stream of changes is not available', async (visit) => {
      const { world, page, urlOf, signInAs, problems } = visit;
      const id = await subscribe(world, { event_types: ['job.run.started'] });
      await page.route('**/webhooks/changes*', (route) => route.fulfill({ status: 204 }));
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      await page.getByText('No deliveries yet').waitFor();
      const run = await world.run();
      await rowsOf(page)
        .filter({ hasText: String(run) })
        .getByText('Delivered', { exact: true })
        .waitFor();
      // The browser logs an error for a response that is not an event stream.
      expect(problems.splice(0).filter((problem) => !problem.includes('changes'))).toEqual([]);
    });

    story(
      'does not claim to be live while offline, and shows missed deliveries afterwards',
      async (visit) => {
        const { world, page, urlOf, signInAs, context } = visit;
        await signInAs('ada');
        await page.goto(urlOf(webhookPathOf(world, longLog)));
        const live = page.getByText('Live: new deliveries appear automatically');
        await live.waitFor();
        await context.setOffline(true);
        await page.getByText('You are offline').waitFor();
        await live.waitFor({ state: 'detached' });
        const run = await world.run();
        await context.setOffline(false);
        await live.waitFor();
        await page.getByText('You are offline').waitFor({ state: 'detached' });
        await rowsOf(page)
          .filter({ hasText: String(run) })
          .first()
          .waitFor();
      },
      { context: {} },
    );

    story('holds new deliveries back while a row in the middle has the focus', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, longLog)));
      await linksOf(page).nth(10).focus();
      const before = await runsOf(page);
      await world.run();
      const show = page.getByRole('button', { name: /^Show \d+ new deliver/ });
      await show.waitFor();
      expect(await runsOf(page)).toEqual(before);
      await show.click();
      await show.waitFor({ state: 'detached' });
      expect(await runsOf(page)).not.toEqual(before);
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Recent Deliveries');
    });

    story('makes each row one tab stop, and shows times to the second', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, longLog)));
      await linksOf(page).first().focus();
      await page.keyboard.press('Tab');
      await expectFocus(linksOf(page).nth(1));
      const times = await rowsOf(page).locator('time').allTextContents();
      expect(times).toHaveLength(25);
      for (const time of times) expect(time).toMatch(/\d:\d\d:\d\d/);
    });

    story('writes filters into the URL, and counts new deliveries that they exclude', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, longLog)));
      await page.getByLabel('Status').selectOption({ label: 'Failed' });
      await page.getByText('of 4', { exact: false }).first().waitFor();
      expect(new URL(page.url()).searchParams.get('status')).toBe('failed');
      await expectOnPage(async () => expect(await rowsOf(page).count()).toBe(5));
      await page.getByLabel('Event', { exact: true }).selectOption({ label: 'Run started' });
      await page.getByText('No delivery matches.').waitFor();
      await page.getByLabel('Event', { exact: true }).selectOption({ label: 'Any' });

      await page.getByLabel('Status').selectOption({ label: 'Any' });
      const { run_id } = await someDelivery(visit);
      await page.getByLabel('Run id').fill(run_id);
      await expectOnPage(async () => expect(new Set(await runsOf(page))).toEqual(new Set([run_id])));
      // New deliveries are counted from the first read on.
      const counted = page.waitForResponse(
        (response) => new URL(response.url()).searchParams.get('limit') === '1',
      );
      await page.getByLabel('Time', { exact: true }).selectOption({ label: 'Last hour' });
      await page.getByText('No delivery matches.').waitFor();
      await counted;
      await world.run();
      await page.getByText(/new deliver(y does|ies do) not match the filters\./).waitFor();
      await page.reload();
      expect(await page.getByLabel('Run id').inputValue()).toBe(run_id);
      expect(await page.getByLabel('Time', { exact: true }).inputValue()).toBe('hour');

      await page.getByLabel('Run id').fill('x');
      await page.getByText('Digits only').waitFor();
      await page.getByRole('button', { name: 'Clear filters' }).click();
      await expectOnPage(async () => expect(await rowsOf(page).count()).toBe(26));
      expect(new URL(page.url()).search).toBe('');
    });

    story('interprets a custom range in local time', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      await signInAs('ada');
      const delivery = await someDelivery(visit);
      const minuteMs = Math.floor(Number(delivery.created_at) / 60_000_000) * 60_000;
      const local = (timeMs: number) =>
        new Date(timeMs)
          .toLocaleString('sv-SE', { timeZone: 'Europe/Berlin' })
          .replace(' ', 'T')
          .slice(0, 16);
      await page.goto(urlOf(webhookPathOf(world, longLog)));
      await page.getByLabel('Time', { exact: true }).selectOption({ label: 'Custom range' });
      await page.getByLabel('From (your time)').fill(local(minuteMs));
      await page.getByLabel('To (empty: now)').fill(local(minuteMs + 60_000));
      await expectOnPage(async () => {
        const runs = await runsOf(page);
        expect(runs).toContain(delivery.run_id);
        expect(runs.length).toBeLessThan(5);
      });
      // The URL must mean the same times in every time zone.
      const utc = (timeMs: number) => `${new Date(timeMs).toISOString().slice(0, 16)}Z`;
      const { searchParams } = new URL(page.url());
      expect([searchParams.get('from'), searchParams.get('to')]).toEqual([
        utc(minuteMs),
        utc(minuteMs + 60_000),
      ]);
      await page.getByLabel('To (empty: now)').fill(local(minuteMs - 60_000));
      await page.getByText('The end must be later than the start.').first().waitFor();
    });

    story(
      'has links to pages up to the end of the log, whose rows do not move while deliveries arrive',
      async (visit) => {
        const { world, page, urlOf, signInAs } = visit;
        await signInAs('ada');
        await page.goto(urlOf(webhookPathOf(world, longLog)));
        await page.getByRole('link', { name: 'Next page' }).click();
        await page.getByText(/^26–50 of /).waitFor();
        await page.locator('[aria-busy="true"]').waitFor({ state: 'detached' });
        expect(new URL(page.url()).searchParams.get('page')).toBe('2');
        const second = await runsOf(page);
        await world.run();
        await page.getByText(/new deliver(y|ies) since you left the first page\./).waitFor();
        expect(await runsOf(page)).toEqual(second);
        await page.reload();
        await expectOnPage(async () => expect(await runsOf(page)).toEqual(second));

        await page.getByRole('link', { name: 'Last page' }).click();
        await expectOnPage(async () => expect((await runsOf(page)).at(-1)).toBe('1'));
        const field = page.getByRole('textbox', { name: 'Page; press Enter to go there' });
        await field.fill('99999');
        await field.press('Enter');
        await field.fill('2');
        await field.press('Enter');
        await expectOnPage(async () => expect(await runsOf(page)).toEqual(second));
        await page.getByRole('button', { name: 'Show the newest' }).click();
        await expectOnPage(async () => expect(new URL(page.url()).search).toBe(''));
      },
    );

    story('opens a delivery by keyboard and by a click anywhere on its row', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, longLog)));
      await linksOf(page).first().focus();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: /, run \d+$/ }).waitFor();
      await page.goBack();
      await rowsOf(page).nth(3).click();
      await page.getByRole('heading', { level: 1, name: /, run \d+$/ }).waitFor();
    });

    story('resends the failed deliveries of a time range, after showing their number', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      world.receiver.respondWith(500);
      const id = await subscribe(world, { name: 'Was down', event_types: ['job.run.started'] });
      await world.run();
      await world.run();
      await expectOnPage(async () => {
        const rows = await world.call<unknown[]>(
          'ada',
          'GET',
          webhookApiOf(world, id, 'deliveries?status=failed'),
        );
        expect(rows).toHaveLength(2);
      });
      world.receiver.respondWith(200);
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      await chartsOf(page);
      await page.getByRole('button', { name: 'Send what I missed' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText(/^\d+ events of .+ will be sent: .*2 failed\.$/).waitFor();
      await dialog.getByLabel(/^Cancelled/).check();
      await dialog.getByText('No cancelled deliveries in this time range.', { exact: false }).waitFor();
      expect(await dialog.getByRole('button', { name: 'Send them' }).isDisabled()).toBe(true);
      await dialog.getByLabel(/^Failed/).check();
      await dialog.getByRole('button', { name: 'Send them' }).click();
      await dialog.getByText('Done: 2 of 2 queued again. 2 delivered.').waitFor();
      await page.keyboard.press('Escape');
      await expectOnPage(async () =>
        expect(await rowsOf(page).getByText('Delivered', { exact: true }).count()).toBe(2),
      );
    });

    story('shows a running recovery after a reload, and stops it', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      const id = await subscribe(world, { name: 'Was down for long', event_types: ['job.run.started'] });
      const { database, accounts } = world;
      const accountId = accounts.enterprise.id;
      // More than a page of deliveries, so that the recovery takes a while.
      await seedDeliveries(database.pool, { accountId, subscriptionId: id, count: 2_000, days: 2 });
      await database.pool.query(
        `UPDATE deliveries SET status = 'failed', reason = 'x', completed_at = created_at WHERE subscription_id = $1`,
        [id],
      );
      await world.call('ada', 'POST', webhookApiOf(world, id, 'recover'), { since: '2020-01-01' });
      await signInAs('rita');
      await page.goto(urlOf(webhookPathOf(world, id)));
      const button = page.getByRole('button', { name: /^Recovery: [\d,]+ of 2,000$/ });
      await button.click();
      const stop = page.getByRole('dialog').getByRole('button', { name: 'Stop' });
      expect(await stop.getAttribute('aria-disabled')).toBe('true');
      await signInAs('ada');
      await page.reload();
      await button.click();
      await stop.click();
      await page
        .getByRole('dialog')
        .getByText(/^Stopped after [\d,]+ of 2,000\. The recovery was cancelled by a request\./)
        .waitFor();
      await page.getByRole('button', { name: 'Send what I missed' }).waitFor({ state: 'attached' });
    });

    story('reports that a recovery is already running', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      await page.route('**/recover', (route) => {
        if (route.request().postData()?.includes('dry_run')) return route.continue();
        return route.fulfill({
          status: 409,
          contentType: 'application/json',
          body: JSON.stringify({
            status: {
              code: 409,
              is_success: false,
              user_message: 'The recovery rec_1 of this webhook is still running.',
            },
            data: null,
          }),
        });
      });
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, longLog)));
      await chartsOf(page);
      await page.getByRole('button', { name: 'Send what I missed' }).click();
      await page.getByRole('dialog').getByLabel('Since').fill('2020-01-01T00:00');
      await page
        .getByRole('dialog')
        .getByText(/ will be sent/)
        .waitFor();
      await page.getByRole('button', { name: 'Send them' }).click();
      await page
        .getByRole('alert')
        .getByText('The recovery rec_1 of this webhook is still running.')
        .waitFor();
    });

    story(
      'keeps the rows while the API is not available, says so, and recovers automatically',
      async (visit) => {
        const { world, page, urlOf, signInAs } = visit;
        await signInAs('ada');
        await page.goto(urlOf(webhookPathOf(world, longLog)));
        await linksOf(page).first().waitFor();
        await page.route('**/deliveries?*', (route) => route.abort());
        await world.run();
        await page.getByText('Live updates are interrupted').waitFor();
        expect(await rowsOf(page).count()).toBe(26);
        await page.unroute('**/deliveries?*');
        await page.getByText('Live: new deliveries appear automatically').waitFor();

        await page.route('**/deliveries?*', (route) => route.fulfill({ status: 500, body: '{}' }));
        await page.reload();
        await page.getByRole('alert').getByText('The deliveries could not be loaded').waitFor();
        // The button must be clicked before the API works again, because the page then retries automatically.
        await page.getByRole('button', { name: 'Try again' }).click();
        await page.unroute('**/deliveries?*');
        await linksOf(page).first().waitFor();
      },
    );
  },
  {
    // Retries are disabled, so that a delivery fails with its first attempt.
    environment: { DELIVERY_MAX_RETRIES: '0' },
    prepare: async (world) => {
      const accountId = world.accounts.enterprise.id;
      longLog = await subscribe(world, { name: 'Busy', event_types: ['job.run.started'] });
      await seedDeliveries(world.database.pool, {
        accountId,
        subscriptionId: longLog,
        count: SEEDED_DELIVERIES,
        days: LOG_DAYS,
      });
    },
  },
);

/** Returns a delivery from the middle of the long log. */
async function someDelivery({ world }: { world: Parameters<typeof subscribe>[0] }) {
  const path = webhookApiOf(world, longLog, `deliveries?limit=1&offset=${SEEDED_DELIVERIES / 2}`);
  const [delivery] = await world.call<{ run_id: string; created_at: string }[]>('ada', 'GET', path);
  if (!delivery) throw new Error('the long log is empty');
  return delivery;
}
