import { gzipSync } from 'node:zlib';
import { expect } from '@jest/globals';
import type { Response } from 'playwright-core';
import { describeConsole, type Visit } from '../support/describe-console.ts';
import { headingOf } from '../support/page-parts.ts';
import { recordCalls, waitUntilRefreshed } from '../support/waiting.ts';
import { subscribe, webhookPathOf } from '../support/webhooks.ts';

/** Limit for the initial scripts, without those of dialogs and menus. The budget for all of them is 250 KB. */
const SCRIPT_BYTES_MAX = 205_000;

const CHANGES = /\/webhooks\/changes/;
const MINUTES = 10;
const MINUTE_MS = 60_000;

describeConsole('requests of a page', (story) => {
  story(
    'loads under 205 KB of compressed script, for the sign-in page and for the list of webhooks',
    async (visit) => {
      const { page, signInAs } = visit;
      const signIn = await scriptBytesOf(visit, async () => {
        await page.goto(visit.urlOf('/'));
        await headingOf(page, 'Sign in');
      });
      await signInAs('ada');
      const list = await scriptBytesOf(visit, async () => {
        await page.goto(visit.urlOf('/'));
        await headingOf(page, 'Webhooks');
        await page.getByText(/No webhooks yet/).waitFor();
      });
      process.stderr.write(
        `first load, compressed script: sign-in ${kilobytes(signIn)}, list of webhooks ${kilobytes(list)}\n`,
      );
      for (const bytes of [signIn, list]) {
        expect(bytes).toBeGreaterThan(50_000);
        expect(bytes).toBeLessThan(SCRIPT_BYTES_MAX);
      }
    },
    { context: {} },
  );

  story('requests its data in parallel with the session', async (visit) => {
    const { page, urlOf, signInAs, world } = visit;
    await signInAs('ada');
    const list = `/accounts/${world.accounts.enterprise.id}/settings/webhooks`;
    let respond = () => {};
    const hasResponse = new Promise<void>((resolve) => {
      respond = resolve;
    });
    await page.route('**/api/v3/session', async (route) => {
      await hasResponse;
      await route.continue();
    });
    const listRequest = page.waitForRequest(/\/webhooks\/subscriptions\?/);
    await page.goto(urlOf(list));
    await listRequest;
    respond();
    await headingOf(page, 'Webhooks');
  });

  story('makes no requests without changes while the stream of changes is open', expectQuiet, {
    context: {},
  });

  story(
    'polls while the stream of changes is not available',
    async (visit) => {
      const { page, urlOf, signInAs, world } = visit;
      await signInAs('ada');
      await page.clock.install();
      await page.route(CHANGES, (route) => route.fulfill({ status: 503 }));
      await page.goto(urlOf(webhookPathOf(world, '').replace(/\/$/, '')));
      await headingOf(page, 'Webhooks');
      await page
        .getByText(/No webhooks yet|Alerts/)
        .first()
        .waitFor();
      const calls = await callsOfMinutes(visit);
      expect(calls.filter((call) => call.includes('/webhooks/subscriptions')).length).toBeGreaterThan(2);
    },
    { context: {} },
  );
});

/** Returns the size of all scripts that were loaded until the page is rendered, each compressed separately, as over the network. */
async function scriptBytesOf({ page }: Visit, load: () => Promise<void>): Promise<number> {
  const bodies: Promise<Buffer>[] = [];
  const note = (response: Response) => {
    if (response.url().endsWith('.js')) bodies.push(response.body());
  };
  page.on('response', note);
  await load();
  page.off('response', note);
  return (await Promise.all(bodies)).reduce((sum, body) => sum + gzipSync(body).length, 0);
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1_000).toFixed(1)} KB`;
}

/** Advances the timers of the page by some minutes without waiting. `npm run pictures -- quiet-tab` waits, and counts bytes. */
async function callsOfMinutes({ page }: Visit): Promise<string[]> {
  const calls = recordCalls(page, /\/api\//);
  for (let minute = 0; minute < MINUTES; minute += 1) {
    await page.clock.runFor(MINUTE_MS);
    await calls();
  }
  return await calls();
}

/**
 * Expects no requests from the list and the page of a webhook. The story needs a separate context, because it replaces the
 * clock.
 */
async function expectQuiet(visit: Visit): Promise<void> {
  const { page, urlOf, signInAs, world } = visit;
  await signInAs('ada');
  const id = await subscribe(world);
  await page.clock.install();
  const refreshed = await waitUntilRefreshed(page);
  const pages = [
    { heading: 'Webhooks', path: webhookPathOf(world, ''), last: page.getByRole('link', { name: 'Alerts' }) },
    // The page requests the log of the webhook, and the empty log requests a job for its sample.
    { heading: 'Alerts', path: webhookPathOf(world, id), last: page.getByText(/"job_id":\d/) },
  ];
  for (const { heading, path, last } of pages) {
    await page.goto(urlOf(path.replace(/\/$/, '')));
    await headingOf(page, heading);
    await last.waitFor();
    await refreshed();
    expect({ heading, calls: await callsOfMinutes(visit) }).toEqual({ heading, calls: [] });
  }
}
