import { createHmac } from 'node:crypto';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { type Receiver, startReceiver } from '@runhook/testing';
import type { Browser, Page } from 'playwright-core';
import { type DevJson, type RunningStart, runStart } from '../running-start.ts';
import { hasBrowser, launchBrowser, testInBrowser } from './support/browser.ts';
import { withScreenshot } from './support/describe-console.ts';
import { headingOf } from './support/page-parts.ts';
import { ELEMENT_TIMEOUT_MS, expectOnPage, START_TIMEOUT_MS, STORY_TIMEOUT_MS } from './support/waiting.ts';
import { watchContext } from './support/watch-page.ts';

const NAME = 'Catalogue refresh';
const NEW_NAME = 'Catalogue refresh, failures';

let folder: string;
let start: RunningStart;
let receiver: Receiver;
let browser: Browser;

beforeAll(async () => {
  if (!hasBrowser) return;
  // The mode is 711, because PostgreSQL does not run as root.
  folder = await realpath(await mkdtemp(join(tmpdir(), 'runhook-story-')));
  await chmod(folder, 0o711);
  start = runStart(join(folder, 'home'));
  [receiver, browser] = await Promise.all([
    startReceiver(),
    launchBrowser(),
    start.waitFor('demonstration passed'),
  ]);
}, START_TIMEOUT_MS);

afterAll(async () => {
  if (!hasBrowser) return;
  await browser?.close();
  await receiver?.close();
  start.process.kill('SIGTERM');
  await start.exited;
  await rm(folder, { recursive: true, force: true });
}, START_TIMEOUT_MS);

testInBrowser(
  'the whole story works against npm start, from the sign-in to a rotated key',
  async () => {
    const dev = start.dev();
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
      reducedMotion: 'reduce',
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    context.setDefaultTimeout(ELEMENT_TIMEOUT_MS);
    const problems = watchContext(context, [dev.baseUrl]);
    const page = await context.newPage();
    try {
      await runStory(page, dev);
      expect(problems).toEqual([]);
    } catch (error) {
      throw await withScreenshot(error, page, 'the whole story', problems);
    } finally {
      await context.close();
    }
  },
  STORY_TIMEOUT_MS,
);

async function runStory(page: Page, dev: DevJson): Promise<void> {
  await signIn(page, dev);
  const secret = await createWebhook(page);
  await seeDeliveryArrive(page, dev, secret);
  await openAndRedeliver(page);
  await testEndpoint(page);
  await edit(page);
  await deactivate(page, dev);
  await deleteWebhook(page);
  await rotateKeyAndUseIt(page, dev);
}

async function signIn(page: Page, { baseUrl, user }: DevJson): Promise<void> {
  await page.goto(`${baseUrl}/`);
  await page.getByLabel('E-mail address').fill(user.email);
  await page.getByLabel('Password', { exact: true }).fill(user.password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await headingOf(page, 'Webhooks');
  // The row of the demonstration's webhook.
  await page.getByRole('row').getByText('204 No content').waitFor();
}

async function createWebhook(page: Page): Promise<string> {
  await page.getByRole('link', { name: 'Create New Webhook' }).click();
  await headingOf(page, 'Create New Webhook');
  await page.getByRole('textbox', { name: 'Name' }).fill(NAME);
  await page.getByRole('checkbox', { name: /Run started/ }).check();
  await page.getByRole('textbox', { name: 'Endpoint' }).fill(`${receiver.url}/catalogue`);
  await page.getByRole('button', { name: 'Save' }).click();
  await headingOf(page, `“${NAME}” was created`);
  await page.getByRole('button', { name: 'Copy the secret' }).click();
  await page.getByText('The secret was copied.').waitFor();
  const secret = String(await page.evaluate('navigator.clipboard.readText()'));
  await page.getByRole('button', { name: 'Go to the webhook' }).click();
  await headingOf(page, NAME);
  expect(await page.content()).not.toContain(secret);
  return secret;
}

const deliveryRows = (page: Page) => page.getByRole('table', { name: 'Deliveries, newest first' });

async function seeDeliveryArrive(page: Page, dev: DevJson, secret: string): Promise<void> {
  await page.getByText('No deliveries yet').waitFor();
  await reportRun(dev);
  const [delivery] = await receiver.waitFor(1, { timeoutMs: ELEMENT_TIMEOUT_MS });
  const body = delivery?.body ?? Buffer.from('');
  expect(delivery?.headers.authorization).toBe(createHmac('sha256', secret).update(body).digest('hex'));
  // The row must change without a reload.
  const row = deliveryRows(page).getByRole('row').nth(1);
  await row.getByText('Delivered', { exact: true }).waitFor();
  await row.getByText('200 OK').waitFor();
}

async function openAndRedeliver(page: Page): Promise<void> {
  await deliveryRows(page).getByRole('link').first().click();
  await headingOf(page, /^Run started, run \d+$/);
  await page.getByText('Delivered on the first attempt.').waitFor();
  await page.getByRole('button', { name: 'Redeliver' }).click();
  const [first, second] = await receiver.waitFor(2, { timeoutMs: ELEMENT_TIMEOUT_MS });
  expect(second?.body).toEqual(first?.body);
  await page.getByText('Delivered after 2 attempts.').waitFor();
}

async function testEndpoint(page: Page): Promise<void> {
  await page.getByRole('link', { name: NAME }).first().click();
  await headingOf(page, NAME);
  await page.getByRole('button', { name: 'Test Endpoint' }).first().click();
  await page.getByText('Your endpoint returned 200 OK').waitFor();
  expect((await receiver.waitFor(3, { timeoutMs: ELEMENT_TIMEOUT_MS })).length).toBe(3);
}

async function edit(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Edit' }).click();
  await headingOf(page, 'Edit webhook');
  await page.getByRole('textbox', { name: 'Name' }).fill(NEW_NAME);
  await page.getByRole('checkbox', { name: /Run errored/ }).check();
  await page.getByRole('button', { name: 'Save' }).click();
  await headingOf(page, NEW_NAME);
}

async function deactivate(page: Page, dev: DevJson): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).click();
  await headingOf(page, 'Webhooks');
  await page.getByRole('row').filter({ hasText: NEW_NAME }).getByText('200 OK').waitFor();
  await page.getByRole('switch', { name: `${NEW_NAME} is active` }).press('Space');
  await page.getByText(`“${NEW_NAME}” was switched off: no events are sent.`).waitFor();
  const href = await page.getByRole('link', { name: NEW_NAME }).getAttribute('href');
  const webhookRow = href?.split('/').at(-1) ?? '';
  const before = await deliveriesTo(webhookRow, dev);
  const run = await reportRun(dev);
  // One fan-out creates the deliveries of all webhooks: when the demonstration's webhook has its delivery, this webhook can
  // get none any more.
  await expectOnPage(async () => {
    const demo = await deliveriesTo(dev.subscription.id, dev);
    expect(demo).toContainEqual(expect.objectContaining({ run_id: run, status: 'delivered' }));
  });
  expect(await deliveriesTo(webhookRow, dev)).toEqual(before);
}

async function deleteWebhook(page: Page): Promise<void> {
  await page.getByRole('button', { name: `More about ${NEW_NAME}` }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog', { name: `Delete “${NEW_NAME}”?` });
  await dialog.getByRole('button', { name: 'Delete the webhook' }).click();
  await page.getByText(`“${NEW_NAME}” was deleted.`).waitFor();
  await expectOnPage(async () =>
    expect(await page.getByRole('row').filter({ hasText: NEW_NAME }).count()).toBe(0),
  );
}

async function rotateKeyAndUseIt(page: Page, { baseUrl, user, account }: DevJson): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name: 'API Access' }).click();
  await headingOf(page, 'API Access');
  await page.getByRole('button', { name: 'Rotate the key…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate the key' }).click();
  await page.getByText('The key was rotated').waitFor();
  const key = (await page.getByTestId('api-key').textContent()) ?? '';
  const statusWith = async (apiKey: string) =>
    (
      await fetch(`${baseUrl}/api/v3/accounts/${account.id}/webhooks/subscriptions`, {
        headers: { authorization: `Token ${apiKey}` },
      })
    ).status;
  expect([await statusWith(user.apiKey), await statusWith(key)]).toEqual([401, 200]);
}

/** Reports a run like a job runner. */
async function reportRun({ baseUrl, account, jobs, runnerToken }: DevJson): Promise<string> {
  const response = await fetch(`${baseUrl}/api/v2/accounts/${account.id}/runs/`, {
    method: 'POST',
    headers: { authorization: `Token ${runnerToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ job_id: jobs[0]?.id, engine_version: '1.9.2' }),
  });
  expect(response.status).toBe(201);
  return String(((await response.json()) as { data: { id: number } }).data.id);
}

interface Delivery {
  run_id: string;
  status: string;
}

async function deliveriesTo(webhookId: string, dev: DevJson): Promise<Delivery[]> {
  const { baseUrl, account, serviceToken } = dev;
  const path = `webhooks/subscription/${webhookId}/deliveries?event_type=job.run.started&limit=100`;
  const response = await fetch(`${baseUrl}/api/v3/accounts/${account.id}/${path}`, {
    headers: { authorization: `Token ${serviceToken}` },
  });
  return ((await response.json()) as { data: Delivery[] }).data;
}
