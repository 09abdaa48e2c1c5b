import { expect } from '@jest/globals';
import { createId } from '@runhook/contract';
import { seedDeliveries, seedSubscription } from '@runhook/testing';
import { describeConsole, type Visit } from '../support/describe-console.ts';
import { expectFocus, headingOf, readPageLocation } from '../support/page-parts.ts';
import { ELEMENT_TIMEOUT_MS, expectOnPage } from '../support/waiting.ts';
import { subscribe } from '../support/webhooks.ts';
import type { World } from '../support/world.ts';

const WEBHOOKS = 22;
const BROKEN = 'Team 07';
const nameOf = (number: number) => `Team ${String(number).padStart(2, '0')}`;

/** The run that the stories search for. */
let runId = 0;

async function prepare(world: World): Promise<void> {
  const { receiver } = world;
  for (let number = 1; number <= WEBHOOKS; number += 1) {
    const name = nameOf(number);
    await subscribe(world, {
      name,
      event_types: ['job.run.completed'],
      client_url: `${receiver.url}/${name.replace(' ', '-')}`,
    });
  }
  receiver.respondWith(({ path }) => ({ status: path === `/${BROKEN.replace(' ', '-')}` ? 500 : 200 }));
  await world.run();
  runId = await world.run();
  await receiver.waitFor(2 * WEBHOOKS, { timeoutMs: ELEMENT_TIMEOUT_MS });
}

/** Types into the search for runs. The chunk of the next page is delivered after the typing pause. */
async function typeIntoRuns(
  { page, urlOf, signInAs, world }: Visit,
  text: string,
  nextPage: string,
): Promise<void> {
  await signInAs('ada');
  await page.clock.install();
  await page.route(`**/assets/${nextPage}-*.js`, async (route) => {
    await page.clock.runFor(1_000);
    await route.continue();
  });
  await page.goto(urlOf(`/accounts/${world.accounts.enterprise.id}/runs`));
  await page.getByRole('searchbox', { name: 'Run id or job' }).fill(text);
}

describeConsole(
  'runs and events across webhooks',
  (story) => {
    story(
      'opens a run on Enter in the search field, even if its page loads longer than the debounce of the search',
      async (visit) => {
        const { page, world } = visit;
        await typeIntoRuns(visit, String(runId), 'run-page');
        await page.keyboard.press('Enter');
        await headingOf(page, `Run ${runId}`);
        expect(readPageLocation(page)).toBe(`/accounts/${world.accounts.enterprise.id}/runs/${runId}`);
      },
      { context: {} },
    );

    story(
      'does not cancel the navigation of a link that is followed within the debounce of the search',
      async (visit) => {
        const { page } = visit;
        await typeIntoRuns(visit, 'Nightly', 'events-page');
        await page.getByRole('link', { name: 'Events', exact: true }).click();
        await headingOf(page, 'Events');
        expect(new URL(page.url()).pathname).toMatch(/\/events$/);
      },
      { context: {} },
    );

    story(
      'shows in two steps from the start page which of 22 webhooks were notified of a run',
      async (visit) => {
        const { page, urlOf, signInAs, world } = visit;
        await signInAs('ada');
        await page.goto(urlOf('/'));
        await headingOf(page, 'Webhooks');
        await page.getByRole('link', { name: 'Runs', exact: true }).click();
        await page.getByRole('searchbox', { name: 'Run id or job' }).fill(String(runId));
        await page.keyboard.press('Enter');
        await expectFocus(await headingOf(page, `Run ${runId}`));
        expect(readPageLocation(page)).toBe(`/accounts/${world.accounts.enterprise.id}/runs/${runId}`);
        await page.getByText(`Webhooks matched 1 of its 2 events: ${WEBHOOKS} deliveries in all.`).waitFor();

        const started = page.getByRole('region', { name: 'Run started' });
        await started.getByText('No webhook matched this event.').waitFor();
        const completed = page.getByRole('region', { name: 'Run completed' });
        await completed.getByText(`${WEBHOOKS} webhooks`).waitFor();
        const rows = completed.getByRole('row').filter({ hasText: /^Team/ });
        await expectOnPage(async () => {
          const cells = (await rows.allInnerTexts()).map((text) => text.split(/\s*\t\s*/).slice(0, 3));
          expect(cells).toHaveLength(WEBHOOKS);
          for (const [index, [name, status, responseText]] of cells.entries()) {
            expect(name).toContain(nameOf(index + 1));
            expect([status, responseText]).toEqual(
              nameOf(index + 1) === BROKEN
                ? ['Failed', '500 Internal server error']
                : ['Delivered', '200 OK'],
            );
          }
        });

        world.receiver.respondWith(200);
        await completed.getByRole('button', { name: `Redeliver to ${BROKEN}` }).click();
        const row = rows.filter({ hasText: BROKEN });
        await row.getByText('Delivered', { exact: true }).waitFor();
        await row.getByText('200 OK').waitFor();
        await row.getByRole('link', { name: BROKEN }).click();
        await headingOf(page, `Run completed, run ${runId}`);
      },
    );

    story(
      'shows the steps of a run, whose logs are loaded, searched and saved when they are opened',
      async (visit) => {
        const { page, urlOf, signInAs, world } = visit;
        const logRequests: string[] = [];
        page.on('request', (request) => {
          if (/logs$/.test(request.url())) logRequests.push(request.url());
        });
        await signInAs('rita');
        await page.goto(urlOf(`/accounts/${world.accounts.enterprise.id}/runs/${runId}`));
        const steps = page.getByRole('region', { name: 'Steps' });
        const first = steps.getByRole('button', { name: /^1\. Invoke dbt with `dbt build`/ });
        await first.waitFor();
        expect(await first.getAttribute('aria-expanded')).toBe('false');
        await first.getByText('Success').waitFor();
        expect(logRequests).toEqual([]);

        await first.click();
        const log = page.getByRole('region', { name: 'The log of step 1' });
        await log.getByText('<b>PASS</b> model').waitFor();
        const colorOf = (text: string) =>
          log.getByText(text).evaluate('(span) => getComputedStyle(span).color');
        expect(await colorOf('colour 31')).not.toBe(await colorOf('Running with dbt'));
        await page.getByRole('searchbox', { name: 'Search the log of step 1' }).fill('ORDERS');
        await page.getByText('1 of 9 lines have this text').waitFor();
        const download = page.waitForEvent('download');
        await page.getByRole('link', { name: 'Download the log of step 1' }).click();
        expect((await download).suggestedFilename()).toBe(`run-${runId}-step-1.log`);
        await page.getByRole('button', { name: 'Debug log', exact: true }).click();
        await page
          .getByRole('region', { name: 'The debug log of step 1' })
          .getByText('Connection opened')
          .waitFor();
        await steps.getByRole('button', { name: /^2\. Upload/ }).click();
        await steps.getByText('This step has no log.').waitFor();
      },
    );

    story('opens a run or the deliveries of an event by id from any page', async (visit) => {
      const { page, urlOf, signInAs, world } = visit;
      const { id: accountId } = world.accounts.enterprise;
      const [{ event_id: eventId } = { event_id: '' }] = await world.call<{ event_id: string }[]>(
        'ada',
        'GET',
        `/v3/accounts/${accountId}/webhooks/deliveries?run_id=${runId}`,
      );
      await signInAs('ada');
      await page.goto(urlOf('/profile/api-access'));
      const searchBox = page.getByRole('textbox', { name: 'Go to a run or an event' });
      await searchBox.fill(eventId);
      await page.keyboard.press('Enter');
      await headingOf(page, 'Events');
      const rows = page.getByRole('table', { name: 'Deliveries, newest first' }).getByRole('row');
      await expectOnPage(async () => expect(await rows.filter({ hasText: 'Team' }).count()).toBe(WEBHOOKS));
      await searchBox.fill(String(runId));
      await page.keyboard.press('Enter');
      await headingOf(page, `Run ${runId}`);
      await searchBox.fill('no such job');
      await page.keyboard.press('Enter');
      await page.getByText('No run matches.').waitFor();
    });

    story(
      'finds a run by job, status and time on a phone, whose deliveries a read-only user cannot resend',
      async (visit) => {
        const { page, urlOf, signInAs, world } = visit;
        await signInAs('rita');
        await page.goto(urlOf('/'));
        await page.getByRole('button', { name: 'Open the navigation' }).click();
        await page
          .getByRole('dialog', { name: 'Navigation' })
          .getByRole('link', { name: 'Runs', exact: true })
          .click();
        const cards = page.getByRole('list', { name: 'Runs, newest first' }).getByRole('listitem');
        await expectOnPage(async () => expect(await cards.count()).toBeGreaterThanOrEqual(2));
        await page.getByRole('searchbox', { name: 'Run id or job' }).fill('no such job');
        await page.getByText('No run matches.').waitFor();
        await page.getByRole('searchbox', { name: 'Run id or job' }).fill('nightly');
        // Both are changed before the page is rendered again.
        await page.getByLabel('Status').evaluate(
          (status, from) => {
            const set = (
              field: { dispatchEvent(event: Event): boolean } | null,
              value: string,
              event: string,
            ) => {
              Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value')?.set?.call(field, value);
              field?.dispatchEvent(new Event(event, { bubbles: true }));
            };
            set(status, 'Success', 'change');
            set(from, '2026-01-01T00:00', 'input');
          },
          await page.getByLabel('Started from (UTC)').elementHandle(),
        );
        await cards
          .filter({ hasText: `Run ${runId}` })
          .first()
          .waitFor();
        await expectOnPage(() => {
          const { search } = new URL(page.url());
          expect(decodeURIComponent(search)).toBe('?search=nightly&status=Success&from=2026-01-01T00:00Z');
        });
        await page.getByLabel('To (UTC; empty: now)').fill('2026-01-02T00:00');
        await page.getByText('No run matches.').waitFor();
        await page.getByRole('button', { name: 'Clear filters' }).click();
        await page.getByRole('link', { name: `Run ${runId}`, exact: true }).click();
        await headingOf(page, `Run ${runId}`);
        const redeliver = page.getByRole('button', { name: `Redeliver to ${nameOf(1)}` });
        expect(await redeliver.getAttribute('aria-disabled')).toBe('true');
        await page.goto(urlOf(`/accounts/${world.accounts.enterprise.id}/runs/987654321`));
        await headingOf(page, 'Not found');
      },
      { context: { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true } },
    );

    story(
      'selects a range of the histogram with the pointer and with keys, and writes it into the URL',
      async (visit) => {
        const { page, urlOf, signInAs } = visit;
        await signInAs('ada');
        await page.goto(urlOf('/'));
        await page.getByRole('link', { name: 'Events', exact: true }).click();
        await headingOf(page, 'Events');
        const bars = page.getByRole('group', { name: 'Deliveries over time (UTC)' }).getByRole('button');
        await expectOnPage(async () => expect(await bars.count()).toBeGreaterThan(40));
        const window = () => {
          const { searchParams } = new URL(page.url());
          return [searchParams.get('from') ?? '', searchParams.get('to') ?? ''] as const;
        };
        const [opened] = window();
        expect(opened).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/);

        await bars.nth(10).scrollIntoViewIfNeeded();
        const [first, last] = [await bars.nth(10).boundingBox(), await bars.nth(19).boundingBox()];
        if (first === null || last === null) throw new Error('the bars are not visible');
        await page.mouse.move(first.x + first.width / 2, first.y + 20);
        await page.mouse.down();
        await page.mouse.move(last.x + last.width / 2, last.y + 30, { steps: 4 });
        await page.getByText(/Press Enter to zoom in/).waitFor();
        await page.mouse.up();
        await expectOnPage(() => expect(window()[1]).not.toBe(''));
        const drawn = window();
        expect(Date.parse(drawn[1]) - Date.parse(drawn[0])).toBe(10 * 30 * 60_000);

        await expectOnPage(async () => expect(await bars.count()).toBe(60));
        await bars.nth(59).focus();
        await page.keyboard.press('Home');
        await expectFocus(bars.nth(0));
        for (let press = 0; press < 3; press += 1) await page.keyboard.press('Shift+ArrowRight');
        await page.keyboard.press('Enter');
        await expectOnPage(() => expect(window()[0]).toBe(drawn[0]));
        await expectOnPage(() =>
          expect(Date.parse(window()[1]) - Date.parse(window()[0])).toBe(4 * 5 * 60_000),
        );
        await page.goBack();
        await expectOnPage(() => expect(window()).toEqual(drawn));
        await page.getByText('7 d', { exact: true }).click();
        await expectOnPage(() =>
          expect(Date.now() - Date.parse(window()[0])).toBeGreaterThan(6.9 * 86_400_000),
        );
      },
    );

    story(
      'shows the same deliveries for a URL in the time zones of Berlin and New York',
      async ({ page, urlOf, signInAs, world, context }) => {
        await signInAs('ada');
        const dayOf = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
        const [from, to] = [`${dayOf(-20)}T22:00`, `${dayOf(2)}T04:30`];
        const path = `/accounts/${world.accounts.enterprise.id}/events?from=${from}Z&to=${to}Z&status=delivered&code=200&slower=0`;
        const describeView = async (view: Visit['page']) => {
          await view.goto(urlOf(path));
          await headingOf(view, 'Events');
          await view.getByRole('table', { name: 'Deliveries, newest first' }).waitFor();
          const bars = view.getByRole('group', { name: 'Deliveries over time (UTC)' }).getByRole('button');
          await bars.first().waitFor();
          return {
            location: readPageLocation(view),
            from: await view.getByLabel('Created from (UTC)').inputValue(),
            to: await view.getByLabel('To (UTC; empty: now)').inputValue(),
            first: await bars.first().getAttribute('aria-label'),
          };
        };
        const berlin = await describeView(page);
        const browser = context.browser();
        const otherContext = await browser?.newContext({ locale: 'en-GB', timezoneId: 'America/New_York' });
        if (!otherContext) throw new Error('the context has no browser');
        try {
          await otherContext.addCookies(await context.cookies());
          expect(await describeView(await otherContext.newPage())).toEqual(berlin);
        } finally {
          await otherContext.close();
        }
        expect(berlin).toMatchObject({ location: path, from, to });
      },
    );

    story('filters the deliveries, and shows how far back a long log was searched', async (visit) => {
      const { page, urlOf, signInAs, world } = visit;
      const { id: accountId } = world.accounts.enterprise;
      const { id } = await seedSubscription(world.database, {
        accountId,
        name: 'Busy',
        clientUrl: 'https://busy.example.com/',
        eventTypes: ['job.run.started'],
        active: false,
      } as Parameters<typeof seedSubscription>[1]);
      await seedDeliveries(world.database.pool, { accountId, subscriptionId: id, count: 52_000, days: 2 });
      await signInAs('ada');
      await page.goto(urlOf(`/accounts/${accountId}/events`));
      await page.getByLabel('Webhook', { exact: true }).first().fill('Busy');
      await page.getByRole('option', { name: 'Busy' }).click();
      await expectOnPage(() => expect(new URL(page.url()).searchParams.get('webhook')).toBe(id));
      await page.getByText('7 d', { exact: true }).click();
      await page.getByLabel('Took at least (ms)').fill('5000');
      await page.getByText(/^No matches so far: searched back to/).waitFor();
      await page.getByRole('button', { name: 'Search further back' }).click();
      await page.getByText('No delivery matches.').waitFor();
      await page.getByLabel('Event id').fill(createId('event'));
      await page.getByLabel('Took at least (ms)').fill('');
      await page.getByText('No delivery matches.').waitFor();
      await page.getByRole('button', { name: 'Clear filters' }).click();
      await page.getByRole('table', { name: 'Deliveries, newest first' }).waitFor();
    });
  },
  // Retries are disabled, so that a delivery fails with its first attempt.
  { environment: { DELIVERY_MAX_RETRIES: '0' }, prepare },
);
