import { expect } from '@jest/globals';
import { describeConsole, type Visit } from './support/describe-console.ts';
import { headingOf } from './support/page-parts.ts';
import { noteCalls, onceRefreshed } from './support/waiting.ts';
import { subscribe, webhookPathOf } from './support/webhooks.ts';

const MINUTE_MS = 60_000;
const CHANGES = /\/webhooks\/changes/;

/** Ten minutes of the page's timers, none of them waited for. `npm run pictures -- quiet-tab` waits, and counts bytes. */
async function callsOfTenMinutes({ page }: Visit): Promise<string[]> {
  const calls = noteCalls(page, /\/api\//);
  for (let minute = 0; minute < 10; minute += 1) {
    await page.clock.runFor(MINUTE_MS);
    await calls();
  }
  return await calls();
}

describeConsole('a page that stays open while nothing happens', (story) => {
  story(
    'asks for nothing in ten minutes: it is told',
    async (visit) => {
      const { page, at, as, world } = visit;
      await as('ada');
      const id = await subscribe(world);
      await page.clock.install();
      const refreshed = await onceRefreshed(page);
      const places = [
        {
          heading: 'Webhooks',
          path: webhookPathOf(world, ''),
          last: page.getByRole('link', { name: 'Alerts' }),
        },
        // The log of the webhook is asked for by the page, and a job for the sample by the log that turned out empty.
        { heading: 'Alerts', path: webhookPathOf(world, id), last: page.getByText(/"job_id":\d/) },
      ];
      for (const { heading, path, last } of places) {
        await page.goto(at(path.replace(/\/$/, '')));
        await headingOf(page, heading);
        await last.waitFor();
        await refreshed();
        expect({ heading, calls: await callsOfTenMinutes(visit) }).toEqual({ heading, calls: [] });
      }
    },
    { context: {} },
  );

  story(
    'asks again and again where it cannot be told',
    async (visit) => {
      const { page, at, as, world } = visit;
      await as('ada');
      await page.clock.install();
      await page.route(CHANGES, (route) => route.fulfill({ status: 503 }));
      await page.goto(at(webhookPathOf(world, '').replace(/\/$/, '')));
      await headingOf(page, 'Webhooks');
      await page
        .getByText(/No webhooks yet|Alerts/)
        .first()
        .waitFor();
      const calls = await callsOfTenMinutes(visit);
      expect(calls.filter((call) => call.includes('/webhooks/subscriptions')).length).toBeGreaterThan(2);
    },
    { context: {} },
  );
});
