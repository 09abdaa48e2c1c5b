import { expect } from '@jest/globals';
import type { Locator } from 'playwright-core';
import { describeConsole } from '../support/describe-console.ts';
import { findCoveringElements, headingOf } from '../support/page-parts.ts';
import { expectOnPage } from '../support/waiting.ts';
import { subscribe, webhookApiOf, webhookPathOf } from '../support/webhooks.ts';
import type { World } from '../support/world.ts';

const FAILING_RUNS = 126;
const CONCURRENT_RUNS = 9;
const CLICKS_MAX = 9;

/** Starts runs, each of which makes an event, and waits until no delivery is pending. */
async function failAll(world: World, webhookId: string, runs: number): Promise<void> {
  const { id: accountId, jobs } = world.accounts.enterprise;
  const body = { job_id: jobs[0]?.id, engine_version: '1.9.2' };
  for (let first = 0; first < runs; first += CONCURRENT_RUNS)
    await Promise.all(
      Array.from({ length: CONCURRENT_RUNS }, () =>
        world.call('ada', 'POST', `/v2/accounts/${accountId}/runs/`, body),
      ),
    );
  await expectOnPage(async () =>
    expect(
      (await world.call<unknown[]>('ada', 'GET', webhookApiOf(world, webhookId, 'deliveries?status=pending')))
        .length,
    ).toBe(0),
  );
}

describeConsole(
  'incidents',
  (story) => {
    story(
      'shows on every page that the database is not writable and that items were set aside',
      async (visit) => {
        const { world, page, urlOf, signInAs } = visit;
        const { id } = world.accounts.enterprise;
        await signInAs('ada');
        const item = { kind: 'event', id: 'wev_1', reason: '22P02: no JSON', created_at: '1' };
        const state = { record_writable: false, quarantined_count: 2, quarantined: [item] };
        await page.route('**/webhooks/service-state', async (route) => {
          const response = await route.fetch();
          const body = (await response.json()) as { data: unknown };
          expect(body.data).toEqual({ record_writable: true, quarantined_count: 0, quarantined: [] });
          await route.fulfill({ response, json: { ...body, data: state } });
        });
        for (const path of ['settings/webhooks', 'events', 'runs']) {
          await page.goto(urlOf(`/accounts/${id}/${path}`));
          await page.getByText('Runhook cannot store data at the moment').waitFor();
          await page.getByText('2 items could not be processed').waitFor();
          await page.getByText('Latest: event wev_1, 22P02: no JSON.').waitFor();
        }
      },
    );

    story('leads from the start page to a repaired webhook in under ten clicks', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      // The endpoint responds like Slack.
      world.receiver.respondWith(({ body }) =>
        'text' in JSON.parse(String(body)) ? { body: 'ok' } : { status: 400, body: 'no_text' },
      );
      const id = await subscribe(world, {
        name: 'Runs to Slack',
        event_types: ['job.run.started'],
        client_url: `${world.receiver.url}/slack`,
      });
      await failAll(world, id, FAILING_RUNS);
      await signInAs('ada');
      let clicks = 0;
      const click = async (button: Locator) => {
        await button.scrollIntoViewIfNeeded();
        expect(await findCoveringElements(button)).toEqual([]);
        await button.click();
        clicks += 1;
      };

      await page.goto(urlOf('/'));
      await page.getByRole('heading', { name: '1 open incident' }).waitFor();
      const incident = page.getByRole('article', { name: '400 no_text: Slack needs a `text` field' });
      await incident
        .getByText(`${FAILING_RUNS} deliveries of ${FAILING_RUNS} runs: ${FAILING_RUNS} have failed.`)
        .waitFor();
      await incident.getByText('set its format to Slack', { exact: false }).waitFor();
      expect(await page.title()).toMatch(/^1 failing: Webhooks/);

      await click(incident.getByRole('link', { name: 'Edit the webhook' }));
      const format = page.getByRole('combobox', { name: 'Format' });
      await click(format);
      await format.selectOption('slack');
      await click(page.getByRole('button', { name: 'Save', exact: true }));

      await headingOf(page, 'Runs to Slack');
      await click(page.getByRole('button', { name: 'Test Endpoint' }).first());
      await page.getByText('Your endpoint returned 200 OK').waitFor();
      await click(page.getByRole('button', { name: `Resend these ${FAILING_RUNS}` }));
      const state = page.getByRole('region', { name: 'Incidents of the webhook' });
      await state.getByText('Incident closed').waitFor();
      await state
        .getByText(`${FAILING_RUNS} deliveries of ${FAILING_RUNS} runs: all have been delivered since.`)
        .waitFor();
      expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
      const accepted = world.receiver.requests.filter(({ body }) => 'text' in JSON.parse(String(body)));
      // One of the requests is the test.
      expect(accepted).toHaveLength(FAILING_RUNS + 1);
    });

    story('shows an error in a 200 of Teams as an incident with its cause', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      const error =
        'Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429';
      world.receiver.respondWith({ status: 200, body: `${error} with ContextId tcid=0.` });
      const id = await subscribe(world, {
        name: 'Runs to Teams',
        event_types: ['job.run.started'],
        client_url: `${world.receiver.url}/teams`,
        format: 'teams',
      });
      await failAll(world, id, CONCURRENT_RUNS);
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, id)));
      const incident = page.getByRole('article', {
        name: 'Microsoft Teams did not post the message: Microsoft Teams endpoint returned HTTP error 429',
      });
      await incident
        .getByText(
          `${CONCURRENT_RUNS} deliveries of ${CONCURRENT_RUNS} runs: ${CONCURRENT_RUNS} have failed.`,
        )
        .waitFor();
    });

    story('sorts failing webhooks first, filters them, and tests them in the list', async (visit) => {
      const { world, page, urlOf, signInAs } = visit;
      world.receiver.respondWith(({ path }) => (path === '/broken' ? { status: 404 } : {}));
      const fields = { event_types: ['job.run.started'] };
      const id = await subscribe(world, {
        ...fields,
        name: 'Broken',
        client_url: `${world.receiver.url}/broken`,
      });
      await subscribe(world, { ...fields, name: 'Whole' });
      await failAll(world, id, CONCURRENT_RUNS);
      await signInAs('ada');
      await page.goto(urlOf(webhookPathOf(world, '')));
      const incident = page.getByRole('article', { name: '404: the path does not exist' });
      await incident.getByRole('button', { name: 'Test the fix' }).click();
      await incident.getByText('Your endpoint returned 404 Not found').waitFor();
      const names = page.getByRole('rowheader');
      await expectOnPage(async () => expect((await names.allInnerTexts())[0]).toBe('Broken'));
      await page.getByText(`${CONCURRENT_RUNS}, 100 % failed`).waitFor();
      await page
        .getByText(/^\d+, none failed$/)
        .first()
        .waitFor();

      await page.getByRole('combobox', { name: 'Order of the webhooks' }).selectOption('Newest first');
      await expectOnPage(async () => expect((await names.allInnerTexts())[0]).toBe('Whole'));
      await page.getByRole('checkbox', { name: 'Failing only' }).click();
      await expectOnPage(async () => expect(await names.allInnerTexts()).toEqual(['Broken']));
      expect(new URL(page.url()).search).toBe('?sort=created_at&failing=true');
      await page.getByRole('searchbox').fill('Whole');
      await page
        .getByText('No name, endpoint or description of a failing webhook contains “Whole”.')
        .waitFor();
      await page.getByRole('button', { name: 'Show all webhooks' }).click();
      await expectOnPage(async () => expect((await names.allInnerTexts())[0]).toBe('Whole'));
    });
  },
  { environment: { DELIVERY_MAX_RETRIES: '0' } },
);
