import { gzipSync } from 'node:zlib';
import { expect } from '@jest/globals';
import type { Response } from 'playwright-core';
import { describeConsole, type Visit } from './support/describe-console.ts';
import { headingOf } from './support/page-parts.ts';

/** Of 250 KB at most: what opens over a page is not among it. */
const SCRIPT_BYTES_MAX = 205_000;

describeConsole('the first load', (story) => {
  story(
    'the sign-in page and the list of webhooks each load under 205 KB of compressed script',
    async (visit) => {
      const { page, as } = visit;
      const signIn = await scriptBytesOf(visit, async () => {
        await page.goto(visit.at('/'));
        await headingOf(page, 'Sign in');
      });
      await as('ada');
      const list = await scriptBytesOf(visit, async () => {
        await page.goto(visit.at('/'));
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

  story('a page asks for what it shows beside the question who is signed in', async (visit) => {
    const { page, at, as, world } = visit;
    await as('ada');
    const list = `/accounts/${world.accounts.enterprise.id}/settings/webhooks`;
    let answer = () => {};
    const isAsked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route('**/api/v3/session', async (route) => {
      await isAsked;
      await route.continue();
    });
    const asked = page.waitForRequest(/\/webhooks\/subscriptions\?/);
    await page.goto(at(list));
    await asked;
    answer();
    await headingOf(page, 'Webhooks');
  });
});

/** Of every script that the browser has been given when the page is there, each compressed by itself, as it is on the wire. */
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
