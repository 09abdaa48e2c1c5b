import { expect } from '@jest/globals';
import { seedJobs } from '@runhook/testing';
import type { Page } from 'playwright-core';
import { describeConsole, type Visit } from '../support/describe-console.ts';
import {
  clickSwitch,
  expectCopied,
  expectFocus,
  headingOf,
  openOptions,
  readPageLocation,
} from '../support/page-parts.ts';
import { expectOnPage } from '../support/waiting.ts';
import { subscribe } from '../support/webhooks.ts';

const JOBS_MANY = 1_200;
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

describeConsole(
  'creating and editing a webhook',
  (story) => {
    story('creates a webhook with the keyboard only, and shows its secret once', async (visit) => {
      const { page, world, context } = visit;
      const before = context.pages();
      await open(visit, 'new');
      await page.getByRole('textbox', { name: 'Name' }).focus();
      await page.keyboard.type('By keyboard');
      await page.keyboard.press('Tab');
      await expectFocus(page.getByRole('checkbox', { name: /Run started/ }));
      await page.keyboard.press('Tab');
      await page.keyboard.press('Space');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Space');
      await page.keyboard.press('Tab');
      await expectFocus(page.getByRole('textbox', { name: 'Endpoint' }));
      await page.keyboard.type(`${world.receiver.url}/by/keyboard`);
      await page.keyboard.press('Tab');
      await expectFocus(page.getByRole('combobox', { name: 'Format' }));
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByRole('textbox', { name: 'Description' }).waitFor();
      await page.keyboard.press('Tab');
      await page.keyboard.type('Nobody touched a mouse.');
      await page.keyboard.press('Tab');
      await expectFocus(jobsOf(page));
      await page.keyboard.type('job 1199');
      await expectOnPage(async () =>
        expect(await page.getByRole('listbox').getByRole('option').count()).toBe(1),
      );
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.keyboard.type('nightly');
      await page.getByRole('option', { name: /^Nightly build/ }).waitFor();
      await expectOnPage(async () =>
        expect(await page.getByRole('listbox').getByRole('option').count()).toBe(1),
      );
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.keyboard.press('Escape');
      await page.getByRole('textbox', { name: 'Endpoint' }).focus();
      await page.keyboard.press('Enter');

      await headingOf(page, '“By keyboard” was created');
      await expectFocus(page.getByRole('region', { name: 'The secret, shown once' }));
      const secret = (await page.getByTestId('secret').textContent()) ?? '';
      expect(secret).toMatch(SECRET);
      await page.keyboard.press('Tab');
      await expectFocus(page.getByRole('button', { name: 'Copy the secret' }));
      await page.keyboard.press('Enter');
      await page.getByText('The secret was copied.').waitFor();
      await expectCopied(page, secret);
      // The secret must not be stored anywhere that outlives the page.
      const storedText = await page.evaluate(
        'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state])',
      );
      expect(storedText).not.toContain(secret.slice(6, 30));
      await page.getByRole('button', { name: 'Go to the webhook' }).focus();
      await page.keyboard.press('Enter');
      await headingOf(page, 'By keyboard');
      expect(await page.content()).not.toContain(secret);
      expect(context.pages()).toEqual(before);

      const [webhook] = await listOf(visit, 'By keyboard');
      expect(webhook).toMatchObject({
        description: 'Nobody touched a mouse.',
        event_types: ['job.run.completed', 'job.run.errored'],
        client_url: `${world.receiver.url}/by/keyboard`,
        active: true,
      });
      const jobs = await jobNames(visit, webhook?.job_ids ?? []);
      expect(jobs).toEqual(['Job 1199', 'Nightly build']);
    });

    story('selects the first job on Enter in the job field, and does not save the form', async (visit) => {
      const { page, world } = visit;
      await open(visit, 'new');
      await page.getByRole('textbox', { name: 'Name' }).fill('Of one job');
      await page.getByRole('checkbox', { name: /Run started/ }).check();
      await page.getByRole('textbox', { name: 'Endpoint' }).fill(`${world.receiver.url}/one-job`);
      await openOptions(page);
      const field = jobsOf(page);
      await field.focus();
      await page.keyboard.press('Enter');
      // Enter is pressed before the server has responded to the search.
      await field.fill('job 1117');
      await page.keyboard.press('Enter');
      await page.getByText('Job 1117', { exact: true }).first().waitFor();
      await field.fill('no such job');
      await page.getByText('No job name contains “no such job”.').waitFor();
      await page.keyboard.press('Enter');
      await field.fill('');
      await page.keyboard.press('Escape');
      await headingOf(page, 'Create New Webhook');
      expect(await listOf(visit, 'Of one job')).toEqual([]);
      await page.getByRole('button', { name: 'Save' }).click();
      await headingOf(page, '“Of one job” was created');
      const [webhook] = await listOf(visit, 'Of one job');
      expect(await jobNames(visit, webhook?.job_ids ?? [])).toEqual(['Job 1117']);
    });

    story(
      'sends custom headers, never shows their values again, and keeps them when the form is saved',
      async (visit) => {
        const { page, world, urlOf } = visit;
        await open(visit, 'new');
        await page.getByRole('textbox', { name: 'Name' }).fill('Behind a gateway');
        await page.getByRole('checkbox', { name: /Run started/ }).check();
        await page.getByRole('textbox', { name: 'Endpoint' }).fill(`${world.receiver.url}/gateway`);
        await openOptions(page);
        await page.getByRole('textbox', { name: 'Signature header' }).fill('X-Signature');
        await page.getByRole('button', { name: 'Add a header' }).click();
        await page.getByRole('textbox', { name: 'Header 1' }).fill('Host');
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByText('Give each header a value.').waitFor();
        await page.getByLabel('Value 1').fill('a key of the gateway');
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByText('You cannot set the Host header.').waitFor();
        await page.getByRole('textbox', { name: 'Header 1' }).fill('X-Gateway-Key');
        await page.getByRole('button', { name: 'Save' }).click();
        await headingOf(page, '“Behind a gateway” was created');

        const [webhook] = await listOf(visit, 'Behind a gateway');
        const path = `/accounts/${world.accounts.enterprise.id}/settings/webhooks/${webhook?.id}`;
        await page.goto(urlOf(`${path}/edit`));
        await page.getByText('signature in X-Signature, 1 custom header').waitFor();
        await openOptions(page);
        await page.getByRole('textbox', { name: 'Description' }).fill('Changed');
        expect(await page.getByLabel('Value 1').inputValue()).toBe('');
        await page.getByRole('button', { name: 'Save' }).click();
        await headingOf(page, 'Behind a gateway');
        await page.getByText('X-Gateway-Key').waitFor();
        await page.getByRole('button', { name: 'Test Endpoint' }).first().click();
        const [request] = await world.receiver.waitFor((one) => one.path === '/gateway');
        expect(request?.headers).toMatchObject({
          'x-gateway-key': 'a key of the gateway',
          'x-signature': expect.stringMatching(/^[0-9a-f]{64}$/),
        });
      },
    );

    story('adds a key pair, whose public key the page of the webhook shows and rotates', async (visit) => {
      const { page, world, urlOf, signInAs } = visit;
      const id = await subscribe(world, { name: 'With a key pair' });
      await signInAs('ada');
      const path = `/accounts/${world.accounts.enterprise.id}/settings/webhooks/${id}`;
      await page.goto(urlOf(`${path}/edit`));
      await openOptions(page);
      await clickSwitch(page.getByRole('switch', { name: 'Sign with Ed25519, too' }));
      await page.getByRole('button', { name: 'Save' }).click();
      await headingOf(page, 'With a key pair');
      const section = page.getByRole('region', { name: 'Public key' });
      await section.getByText(/^whpk_/).waitFor();
      // The parts above move the button when they are loaded.
      await page.getByText('No deliveries in the last 24 hours.').waitFor();
      await page.getByRole('heading', { name: 'No deliveries yet' }).waitFor();
      await section.getByRole('button', { name: 'Rotate the key pair' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate the key pair' }).click();
      await section.getByText('Both keys sign.').waitFor();
      expect(await section.getByText(/^whpk_/).count()).toBe(2);
      await page.goto(urlOf(`${path}/help`));
      await page.getByText('With a public key instead of the secret').first().waitFor();
    });

    story('shows missing and rejected values next to their fields, and focuses the first', async (visit) => {
      const { page, urlOf } = visit;
      await open(visit, 'new');
      await page.getByRole('button', { name: 'Save' }).click();
      for (const expectedText of [
        'Give the webhook a name.',
        'Choose at least one event.',
        'Enter the address that deliveries are sent to.',
      ])
        await page.getByText(expectedText).waitFor();
      await expectFocus(page.getByRole('textbox', { name: 'Name' }));
      await page.getByRole('textbox', { name: 'Name' }).fill('Refused');
      expect(await page.getByText('Give the webhook a name.').count()).toBe(0);
      await page.getByRole('checkbox', { name: /Run errored/ }).check();
      const endpoint = page.getByRole('textbox', { name: 'Endpoint' });
      await endpoint.fill('https://10.0.0.1/hook');
      await page.getByRole('button', { name: 'Save' }).click();
      // Only the server knows which addresses are blocked.
      await page.getByText(/^The endpoint .*\.$/).waitFor();
      await expectFocus(endpoint);
      expect(await endpoint.getAttribute('aria-invalid')).toBe('true');

      await page.route('**/webhooks/subscriptions', (route) => route.abort());
      await endpoint.fill('https://example.com/hook');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('alert').getByText('The webhook was not created').waitFor();
      await page.getByText('The server did not respond.', { exact: false }).waitFor();
      await page.unroute('**/webhooks/subscriptions');

      // A session that ends while the user types must not discard the input.
      const cookies = await page.context().cookies();
      await page.context().clearCookies();
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Your session has ended. Sign in again.').waitFor();
      await page.getByRole('link', { name: 'Sign in in a new tab' }).waitFor();
      await page.context().addCookies(cookies);
      await page.getByRole('button', { name: 'Save' }).click();
      await headingOf(page, '“Refused” was created');
      expect(page.url()).toBe(urlOf(readPageLocation(page)));
    });

    story('asks before the page with the new secret is left or closed', async (visit) => {
      const { page, world } = visit;
      await open(visit, 'new');
      await page.getByRole('textbox', { name: 'Name' }).fill('Asks first');
      await page.getByRole('checkbox', { name: /Run started/ }).check();
      await page.getByRole('textbox', { name: 'Endpoint' }).fill(`${world.receiver.url}/deep/er?a=b`);
      await page.getByRole('button', { name: 'Save' }).click();
      await headingOf(page, '“Asks first” was created');

      await page.getByRole('link', { name: 'API Access' }).click();
      const dialog = page.getByRole('dialog', { name: 'Leave without the secret?' });
      await dialog.waitFor();
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      await headingOf(page, '“Asks first” was created');
      const dialogOpened = page.waitForEvent('dialog');
      const closing = page.close({ runBeforeUnload: true });
      const question = await dialogOpened;
      expect(question.type()).toBe('beforeunload');
      await question.dismiss();
      await closing;

      await page.getByText("app.post('/deep/er'").waitFor();
      await page.getByRole('tab', { name: 'Python' }).click();
      await page.getByText('!= "/deep/er"').waitFor();
      await page.getByRole('tab', { name: 'openssl' }).click();
      await page.getByText(`curl -i '${world.receiver.url}/deep/er?a=b'`).waitFor();

      await page.getByRole('link', { name: 'API Access' }).click();
      await page.getByRole('button', { name: 'Leave without it' }).click();
      await headingOf(page, 'API Access');
    });

    story('asks before the page is left with unsaved changes, but not after saving', async (visit) => {
      const { page, world } = visit;
      const { id } = await create(visit, { name: 'To be edited' });
      await open(visit, `${id}/edit`);
      await headingOf(page, 'Edit webhook');
      const name = page.getByRole('textbox', { name: 'Name' });
      await name.fill('Edited');
      await page.getByRole('link', { name: 'Cancel' }).click();
      const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
      await dialog.getByRole('button', { name: 'Stay here' }).click();
      await dialog.waitFor({ state: 'hidden' });
      expect(await name.inputValue()).toBe('Edited');
      await openOptions(page);
      await clickSwitch(page.getByRole('switch', { name: 'Active' }));
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('“Edited” was saved.').waitFor();
      await headingOf(page, 'Edited');
      expect(await listOf(visit, 'Edited')).toMatchObject([
        { id, active: false, client_url: `${world.receiver.url}/hook` },
      ]);
    });

    story('warns before it overwrites the changes of another user', async (visit) => {
      const { page, world } = visit;
      const { id } = await create(visit, { name: 'Of two' });
      await open(visit, `${id}/edit`);
      const path = `/v3/accounts/${world.accounts.enterprise.id}/webhooks/subscription/${id}`;
      const otherVersion = await world.call<object>('ada', 'GET', path);
      const moved = `${world.receiver.url}/moved`;
      await world.call('ada', 'PUT', path, { ...otherVersion, client_url: moved });

      await openOptions(page);
      await page.getByRole('textbox', { name: 'Description' }).fill('Mine');
      await page.getByRole('button', { name: 'Save' }).click();
      const problem = page.getByRole('alert').getByText('after you opened it and changed the endpoint.');
      await problem.waitFor();
      expect(await world.call('ada', 'GET', path)).toMatchObject({ client_url: moved, description: '' });
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('“Of two” was saved.').waitFor();
      expect(await world.call('ada', 'GET', path)).toMatchObject({ description: 'Mine' });
    });

    story('keeps hundreds of jobs, with their names, when a webhook is edited', async (visit) => {
      const { page, world } = visit;
      const { id: accountId } = world.accounts.enterprise;
      const rows = await world.database.prisma.job.findMany({
        where: { accountId: BigInt(accountId) },
        orderBy: { id: 'desc' },
        take: 150,
      });
      const job_ids = rows.map(({ id }) => Number(id));
      const { id } = await create(visit, { name: 'Of hundreds', job_ids });
      await open(visit, `${id}/edit`);
      await page.getByText('150 jobs').waitFor();
      await openOptions(page);
      await page.getByText('Job 1200', { exact: true }).first().waitFor();
      await page.getByText('Job 1051', { exact: true }).waitFor();
      await page.getByText(/The first 50 of 1,202 are listed/).waitFor();
      await page.getByRole('textbox', { name: 'Description' }).fill('Still of hundreds');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('“Of hundreds” was saved.').waitFor();
      const [saved] = await listOf(visit, 'Of hundreds');
      expect(saved?.job_ids.map(Number).sort()).toEqual([...job_ids].sort());
    });

    story('reports a webhook that does not exist, and one that cannot be loaded', async (visit) => {
      const { page } = visit;
      await open(visit, 'wsu_none/edit');
      await page.getByText('There is no such webhook in this account.', { exact: false }).waitFor();
      const { id } = await create(visit, { name: 'Cannot be loaded' });
      await page.route('**/webhooks/subscription/*', (route) => route.fulfill({ status: 500, json: {} }));
      await open(visit, `${id}/edit`);
      await page.getByText('The webhook could not be loaded').waitFor();
      await page.unroute('**/webhooks/subscription/*');
      await page.getByRole('button', { name: 'Try again' }).click();
      await expectOnPage(async () =>
        expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Cannot be loaded'),
      );
    });
  },
  {
    prepare: async ({ database, accounts }) => {
      const { id: accountId, jobs } = accounts.enterprise;
      const { project_id: projectId = 0, environment_id: environmentId = 0 } = jobs[0] ?? {};
      await seedJobs(database.pool, { accountId, projectId, environmentId, count: JOBS_MANY });
    },
  },
);

interface Webhook {
  id: string;
  job_ids: string[];
}

async function open({ page, urlOf, signInAs, world }: Visit, rest: string): Promise<void> {
  await signInAs('ada');
  await page.goto(urlOf(`/accounts/${world.accounts.enterprise.id}/settings/webhooks/${rest}`));
  await page.getByRole('heading', { level: 1 }).waitFor();
}

function jobsOf(page: Page) {
  return page.getByRole('combobox', { name: 'Jobs' }).or(page.getByRole('textbox', { name: 'Jobs' }));
}

const apiOf = ({ world }: Visit) => `/v3/accounts/${world.accounts.enterprise.id}/webhooks/subscriptions`;

async function listOf(visit: Visit, search: string): Promise<Webhook[]> {
  return await visit.world.call('ada', 'GET', `${apiOf(visit)}?search=${encodeURIComponent(search)}`);
}

async function create(visit: Visit, fields: object): Promise<Webhook> {
  const body = {
    event_types: ['job.run.completed'],
    client_url: `${visit.world.receiver.url}/hook`,
    ...fields,
  };
  return await visit.world.call('ada', 'POST', apiOf(visit), body);
}

async function jobNames({ world }: Visit, ids: string[]): Promise<string[]> {
  const path = `/v2/accounts/${world.accounts.enterprise.id}/jobs/?ids=${ids.join(',')}`;
  return (await world.call<{ name: string }[]>('ada', 'GET', path)).map(({ name }) => name).sort();
}
