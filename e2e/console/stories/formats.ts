import { expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeConsole, type Visit } from '../support/describe-console.ts';
import { clickSwitch, headingOf, openOptions } from '../support/page-parts.ts';
import { expectOnPage } from '../support/waiting.ts';
import { subscribe, webhookApiOf, webhookPathOf } from '../support/webhooks.ts';

const formatOf = (page: Page) => page.getByRole('combobox', { name: 'Format' });

describeConsole('formats and delivery options', (story) => {
  story('sends a failed run to Slack without a relay', async (visit) => {
    const { page, world } = visit;
    await open(visit, 'new');
    await page.getByRole('textbox', { name: 'Name' }).fill('Failures to Slack');
    await page.getByRole('checkbox', { name: /Run errored/ }).check();
    const endpoint = page.getByRole('textbox', { name: 'Endpoint' });
    await endpoint.fill('https://hooks.slack.com/services/T0/B0/x');
    await expectOnPage(async () => expect(await formatOf(page).inputValue()).toBe('slack'));
    const message = page.getByRole('region', { name: 'Message in Slack' });
    await message.getByText('Daily job (sample)').first().waitFor();
    // Without the address of Slack, the format is that of the contract again.
    await endpoint.fill(`${world.receiver.url}/slack`);
    await expectOnPage(async () => expect(await formatOf(page).inputValue()).toBe('runhook'));
    await page.getByRole('region', { name: 'Sample payload' }).waitFor();

    // A receiver that responds like Slack takes the place of Slack, which tests cannot reach.
    await formatOf(page).selectOption('slack');
    world.receiver.respondWith(({ body }) => likeSlack(body));
    await page.getByRole('button', { name: 'Send this event now' }).click();
    await page.getByText('Your endpoint returned 200 OK').waitFor();
    const [sample] = await world.receiver.waitFor(({ path }) => path === '/slack');
    await page.getByText('Request body', { exact: true }).first().click();
    const shown = await page.getByRole('region', { name: 'Request body', exact: true }).textContent();
    expect(withoutLinks(JSON.parse(shown ?? ''))).toEqual(withoutLinks(JSON.parse(String(sample?.body))));

    await page.getByRole('button', { name: 'Save' }).click();
    await headingOf(page, 'Failures to Slack');
    const runId = await world.run('errored');
    const row = page.getByRole('table', { name: 'Deliveries, newest first' }).getByRole('row').nth(1);
    await row.getByText('200 OK').waitFor();
    const messages = world.receiver.requests.filter(({ path }) => path === '/slack');
    expect(messages).toHaveLength(2);
    expect(String(messages[1]?.body)).toContain(String(runId));

    await row.getByRole('link').click();
    await page.getByText('format Slack', { exact: false }).first().waitFor();
    await page.getByRole('region', { name: 'Message in Slack' }).getByText('Model orders failed').waitFor();
  });

  story('asks for the options of a format, and names the events for which nothing is sent', async (visit) => {
    const { page, world, urlOf } = visit;
    await open(visit, 'new');
    await page.getByRole('textbox', { name: 'Name' }).fill('On call');
    await page.getByRole('checkbox', { name: /Run errored/ }).check();
    await page.getByRole('textbox', { name: 'Endpoint' }).fill('https://events.pagerduty.com/v2/enqueue');
    await page.getByText('Nothing is sent for “Run started”.', { exact: false }).waitFor();
    await page.getByRole('radio', { name: 'Run started' }).check();
    await page.getByText('Nothing is sent to PagerDuty for this event', { exact: false }).waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/^Integration key is required/).waitFor();
    const key = page.locator('input[type=password]').first();
    await key.fill('0123456789abcdef0123456789abcdef');
    await page.getByRole('button', { name: 'Save' }).click();
    await headingOf(page, 'On call');
    await page.getByText('routing_key').waitFor();
    expect(await page.content()).not.toContain('0123456789abcdef');
    const [webhook] = await world.call<{ id: string }[]>(
      'ada',
      'GET',
      `/v3/accounts/${world.accounts.enterprise.id}/webhooks/subscriptions?search=On%20call`,
    );
    await page.goto(urlOf(`${webhookPathOf(world, webhook?.id ?? '')}/edit`));
    expect(await key.inputValue()).toBe('');
    expect(await key.getAttribute('placeholder')).toBe('***');
    // Stored values are not sent to an unsaved address.
    await page.getByRole('textbox', { name: 'Endpoint' }).fill('https://events.eu.pagerduty.com/v2/enqueue');
    await page.getByRole('button', { name: 'Send this event now' }).click();
    await page.getByText(/^To test these changes, enter “Integration key” again/).waitFor();
  });

  story('shows a problem of a field that a feed does not need', async (visit) => {
    const { page } = visit;
    await open(visit, 'new');
    await page.getByRole('textbox', { name: 'Name' }).fill('Feed');
    await page.getByRole('checkbox', { name: /Run errored/ }).check();
    await openOptions(page);
    await page.getByRole('textbox', { name: 'Rate limit' }).fill('0');
    await clickSwitch(page.getByRole('switch', { name: 'Feed only' }));
    await page.getByRole('textbox', { name: 'Rate limit' }).waitFor({ state: 'hidden' });
    await page.locator('summary', { hasText: 'More options' }).click();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/^Enter a number from 0\.1/).waitFor();
    await page.getByRole('textbox', { name: 'Rate limit' }).fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await headingOf(page, 'Feed');
  });

  story('finds webhooks by label, and duplicates one with its options', async (visit) => {
    const { page, world, urlOf, signInAs } = visit;
    await subscribe(world, { name: 'Labelled', labels: { team: 'data' }, ordered: true, rate_limit: 2 });
    await subscribe(world, { name: 'Unlabelled' });
    await signInAs('ada');
    await page.goto(urlOf(webhookPathOf(world, '').replace(/\/$/, '')));
    await page.getByRole('link', { name: 'Show webhooks with the label team:data' }).click();
    await expectOnPage(async () =>
      expect(await page.getByRole('rowheader').getByRole('link').first().textContent()).toBe('Labelled'),
    );
    await page.getByRole('link', { name: 'Unlabelled' }).waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'More about Labelled' }).click();
    await page.getByRole('menuitem', { name: 'Duplicate' }).click();
    await headingOf(page, 'Create New Webhook');
    await page.getByText('in order, at most 2 per second, 1 label').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await headingOf(page, '“Copy of Labelled” was created');
    await page.getByRole('button', { name: 'Copy the secret' }).click();
    await page.getByRole('button', { name: 'Go to the webhook' }).click();
    await page.getByText('2 per second').waitFor();
    await page.getByText('team: data').waitFor();
  });

  story('explains why a webhook did not hear about a run', async (visit) => {
    const { page, world, urlOf, signInAs } = visit;
    await subscribe(world, { name: 'Starts only', event_types: ['job.run.started'] });
    const runId = await world.run('errored');
    await signInAs('ada');
    await page.goto(urlOf(`/accounts/${world.accounts.enterprise.id}/runs/${runId}`));
    await page.getByRole('heading', { name: 'Why did a webhook not hear about this run?' }).click();
    const webhook = page
      .getByRole('list', { name: 'Webhooks not notified' })
      .getByRole('listitem')
      .filter({ hasText: 'Starts only' });
    await webhook.getByText('Run errored', { exact: false }).waitFor();
  });

  story('sends what a webhook missed while it was off, after a count', async (visit) => {
    const { page, world, urlOf, signInAs } = visit;
    const fields = { name: 'Was off', event_types: ['job.run.started'], active: false };
    const id = await subscribe(world, { ...fields, client_url: `${world.receiver.url}/missed` });
    await subscribe(world, {
      name: 'Was on',
      event_types: ['job.run.started'],
      client_url: `${world.receiver.url}/on`,
    });
    const runIds = [await world.run(), await world.run()];
    const waitForAll = async (path: string) => {
      for (const runId of runIds)
        await world.receiver.waitFor(
          (request) => request.path === path && String(request.body).includes(`"runId":"${runId}"`),
        );
    };
    // An event that is dispatched after the activation is not missed.
    await waitForAll('/on');
    const path = webhookApiOf(world, id);
    const webhook = await world.call<object>('ada', 'GET', path);
    await world.call('ada', 'PUT', path, { ...webhook, active: true });
    await signInAs('ada');
    await page.goto(urlOf(webhookPathOf(world, id)));
    await page.getByRole('heading', { name: 'No deliveries yet' }).waitFor();
    await page.getByRole('button', { name: 'Send what I missed' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/^\d+ events of .+ will be sent: \d+ never sent\.$/).waitFor();
    await dialog.getByRole('button', { name: 'Send them' }).click();
    await dialog.getByText(/^Done: /).waitFor();
    await waitForAll('/missed');
  });

  story('counts the recent events that filters match', async (visit) => {
    const { page, world } = visit;
    await world.run('errored');
    await world.run('success');
    await open(visit, 'new');
    await page.getByRole('checkbox', { name: /Run completed/ }).check();
    await openOptions(page);
    await page.getByRole('checkbox', { name: 'Errored', exact: true }).check();
    await page.getByText(/^\d+ of [\d,]+ events of the last 7 days match/).waitFor();
  });
});

/** Responds like an incoming webhook of Slack. */
function likeSlack(body: Buffer): { status: number; body: string } {
  const { text, blocks } = JSON.parse(String(body)) as { text?: string; blocks?: unknown[] };
  return text === undefined && blocks === undefined
    ? { status: 400, body: 'no_text' }
    : { status: 200, body: 'ok' };
}

/** The message without what differs from sample to sample: addresses and times. */
function withoutLinks(message: unknown): unknown {
  return JSON.parse(
    JSON.stringify(message)
      .replaceAll(/https?:[^|>"]*/g, 'URL')
      .replaceAll(/wev_\w+|\d{10}|\d{4}-\d\d-\d\dT[\d:.]+Z/g, '#'),
  );
}

async function open({ page, urlOf, signInAs, world }: Visit, rest: string): Promise<void> {
  await signInAs('ada');
  await page.goto(urlOf(`/accounts/${world.accounts.enterprise.id}/settings/webhooks/${rest}`));
  await page.getByRole('heading', { level: 1 }).waitFor();
}
