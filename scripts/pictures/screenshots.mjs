// npm run pictures -- screenshots: writes pictures of the main pages of the console, with a day of realistic data, to docs/screenshots.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readArguments, usage } from '../shared/arguments.mjs';
import { step } from '../shared/command.mjs';
import { root } from '../shared/workspace.mjs';
import { withConsoleWorld } from './console-world.mjs';

const FOLDER = join(root, 'docs', 'screenshots');
const BYTES_MAX = 150_000;
/** A run of which several webhooks received events. */
const RUN_ID = 42_200;
const VIEWPORT = { width: 1280, height: 800 };

const USAGE = usage({
  call: 'npm run pictures -- screenshots',
  purpose: 'takes the pictures of the README and of docs/console.md, with a day of realistic data',
  duration: 'a minute; each picture is printed at once',
  prerequisites: 'chromium',
});

readArguments(USAGE, {});
await withConsoleWorld(async (world) => {
  const { chromium, executablePath, chromiumArgs, opened } = world;
  const deliveryId = await step('creating a delivery that succeeds with its third attempt', () =>
    failingRun(world),
  );
  const browser = await chromium.launch({ executablePath, args: chromiumArgs });
  opened(() => browser.close());
  await step('taking the pictures', () => takePictures(browser, world, deliveryId));
});

/** Returns the id of the delivery that succeeds with its third attempt. */
async function failingRun({ management, demo, receiver, testing }) {
  receiver.respondWith((_request, index) =>
    index < 2
      ? {
          status: 503,
          headers: { 'content-type': 'text/plain' },
          body: 'The pager is being updated. Try again.',
        }
      : { status: 200, headers: { 'content-type': 'application/json' }, body: '{"page":"sent"}' },
  );
  const call = async (method, path, body) => {
    const response = await fetch(`${management}/api${path}`, {
      method,
      headers: { authorization: `Token ${demo.user.apiKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await response.json()).data;
  };
  const runs = `/v2/accounts/${demo.account.id}/runs/`;
  await call('POST', runs, { job_id: demo.jobs[2].id, engine_version: '1.9.2', reason: 'Scheduled' });
  const webhook = `/v3/accounts/${demo.account.id}/webhooks/subscription/${demo.webhookIds[0]}`;
  return await testing.eventually(
    async () => {
      const [latest] = await call('GET', `${webhook}/deliveries?limit=1`);
      if (latest?.status !== 'delivered' || latest.attempt_count < 3)
        throw new Error('the delivery has not succeeded yet');
      return latest.id;
    },
    { timeoutMs: 30_000 },
  );
}

async function takePictures(browser, { management, demo, testing }, deliveryId) {
  await mkdir(FOLDER, { recursive: true });
  const list = `/accounts/${demo.account.id}/settings/webhooks`;
  const webhook = `${list}/${demo.webhookIds[0]}`;
  const pictures = [
    { name: 'webhooks', path: list },
    { name: 'new-webhook', path: `${list}/new`, prepare: fillForm },
    { name: 'webhook', path: webhook },
    { name: 'webhook-dark', path: webhook, colorScheme: 'dark' },
    { name: 'delivery', path: `${webhook}/deliveries/${deliveryId}`, prepare: waitForWebhook },
    { name: 'events', path: `/accounts/${demo.account.id}/events`, prepare: waitForDeliveries },
    { name: 'run', path: `/accounts/${demo.account.id}/runs/${RUN_ID}` },
    { name: 'help', path: `${webhook}/help` },
  ];
  for (const { name, path, prepare, colorScheme = 'light' } of pictures) {
    const context = await browser.newContext({
      viewport: VIEWPORT,
      colorScheme,
      locale: 'en-GB',
      timezoneId: 'UTC',
      reducedMotion: 'reduce',
    });
    const { email, password } = demo.person;
    await context.request.post(`${management}/api/v3/session`, { data: { email, password } });
    const page = await context.newPage();
    await page.goto(management + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    // The page's Content-Security-Policy forbids evaluation of strings, which `waitForFunction` needs.
    await testing.eventually(
      async () => {
        const loadingCount = await page.locator('.mantine-Skeleton-root, .mantine-Loader-root').count();
        if (loadingCount > 0) throw new Error(`${path} is still loading`);
      },
      { timeoutMs: 30_000 },
    );
    await prepare?.(page);
    const file = join(FOLDER, `${name}.webp`);
    const height = await page.evaluate('Math.min(document.documentElement.scrollHeight, 1400)');
    await page.setViewportSize({ ...VIEWPORT, height: Math.max(height, 560) });
    const size = await writeWebp(page, file);
    process.stdout.write(`${file}: ${Math.round(size / 1_000)} KB\n`);
    if (size > BYTES_MAX) throw new Error(`${file} is over ${BYTES_MAX / 1_000} KB`);
    await context.close();
  }
}

/** Writes a WebP file, which Playwright does not support, because a PNG of a chart is three times as large. Returns its size in bytes. */
async function writeWebp(page, file) {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 88 });
  const bytes = Buffer.from(data, 'base64');
  await writeFile(file, bytes);
  return bytes.length;
}

/** Waits until the page has loaded: it writes its time range into its address first. */
async function waitForDeliveries(page) {
  await page.getByRole('heading', { level: 2, name: 'Deliveries' }).waitFor();
}

/** Waits until the page has loaded the name of the webhook, after its heading. */
async function waitForWebhook(page) {
  await page.getByRole('main').getByRole('link', { name: 'On-call pager' }).waitFor();
}

async function fillForm(page) {
  await page.getByRole('textbox', { name: 'Name' }).fill('Data quality alerts');
  await page.getByRole('checkbox', { name: /Run errored/ }).check();
  await page.getByRole('textbox', { name: 'Endpoint' }).fill('https://discord.com/api/webhooks/1234/demo');
  await page.getByRole('region', { name: 'Message in Discord' }).waitFor();
}
