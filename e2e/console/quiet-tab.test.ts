import { expect } from '@jest/globals';
import { describeConsole, type Visit } from './support/describe-console.ts';
import { headingOf } from './support/page-parts.ts';
import { noteCalls, onThePage } from './support/waiting.ts';
import { subscribe, webhookPathOf } from './support/webhooks.ts';

const MINUTE_MS = 60_000;
const CHANGES = /\/webhooks\/changes/;

/** Ten minutes of the page's timers, none of them waited for. `npm run quiet-tab` waits, and counts bytes. */
async function callsOfTenMinutes({ page }: Visit): Promise<string[]> {
  const calls = noteCalls(page, /\/api\//);
  for (let minute = 0; minute < 10; minute += 1) {
    await page.clock.runFor(MINUTE_MS);
    await calls();
  }
  return await calls();
}

describeConsole('a page that stays open while nothing happens', (story) => {
  story('asks for nothing in ten minutes: it is told', async (visit) => {
    const { page, at, as, world } = visit;
    await as('ada');
    const id = await subscribe(world);
    await page.clock.install();
    await page.addInitScript(SAYS_THAT_IT_LISTENS);
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
      const rested = restOf(visit);
      await page.goto(at(path.replace(/\/$/, '')));
      await headingOf(page, heading);
      await page.locator('html[data-listens]').waitFor();
      await last.waitFor();
      await rested();
      expect({ heading, calls: await callsOfTenMinutes(visit) }).toEqual({ heading, calls: [] });
    }
  });

  story('asks again and again where it cannot be told', async (visit) => {
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
  });
});

/** What the page asks for once more as its stream opens, it has asked for when this can be seen. */
const SAYS_THAT_IT_LISTENS = `
  window.EventSource = class extends EventSource {
    constructor(...values) {
      super(...values);
      this.addEventListener('open', () => { document.documentElement.dataset.listens = ''; });
    }
  };`;

/**
 * Resolves once every call that the page has begun is answered, the stream aside. Between the answer to one and the call
 * that follows from it nothing is open: what the last one brings has to be seen first.
 */
function restOf({ page }: Visit): () => Promise<void> {
  const open = new Set<object>();
  page.on('request', (request) => {
    if (/\/api\//.test(request.url()) && !CHANGES.test(request.url())) open.add(request);
  });
  for (const ended of ['requestfinished', 'requestfailed'] as const)
    page.on(ended as 'requestfinished', (request) => open.delete(request));
  return () => onThePage(() => expect(open.size).toBe(0));
}
