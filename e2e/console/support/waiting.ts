import { expect } from '@jest/globals';
import { eventually } from '@runhook/testing';
import type { Page, Request } from 'playwright-core';

// Nets under what should have come long before. The machine may be busy with other things, and no test of the console
// is about how fast it is: where one of these ends a wait, what was waited for is missing.
export const ELEMENT_TIMEOUT_MS = 60_000;
export const STORY_TIMEOUT_MS = 300_000;
export const START_TIMEOUT_MS = 300_000;

/** As `eventually`, for as long as an element is waited for. */
export function onThePage<T>(assertion: () => T | Promise<T>): Promise<T> {
  return eventually(assertion, { timeoutMs: ELEMENT_TIMEOUT_MS });
}

/** An answer that is held back until a test lets it go. */
export function held(): { status: Promise<number>; answer: (status: number) => void } {
  let answer: (status: number) => void = () => undefined;
  const status = new Promise<number>((resolve) => {
    answer = resolve;
  });
  return { status, answer };
}

/** Resolves once the calls that the page has begun have been told of: one of our own comes after them. */
async function callsAreTold(page: Page): Promise<void> {
  await page.evaluate("fetch('/healthz').then((answer) => answer.text())");
}

/** Notes the calls to such addresses from now on. What it gives answers those that the page has begun. */
export function noteCalls(page: Page, address: RegExp): () => Promise<string[]> {
  const calls: string[] = [];
  page.on('request', (request) => {
    if (address.test(request.url())) calls.push(`${request.method()} ${request.url()}`);
  });
  return async () => {
    await callsAreTold(page);
    return [...calls];
  };
}

/** Told by the page itself: Playwright may tell of the answer to a stream after the calls that follow from it. */
const SAYS_THAT_IT_LISTENS = `
  window.EventSource = class extends EventSource {
    constructor(...values) {
      super(...values);
      this.addEventListener('open', () => { document.documentElement.dataset.listens = ''; });
    }
  };`;

/**
 * To be called before a page is opened. What it gives resolves once that hears of changes, for which it asks once more for
 * what it shows, and every call that it has begun is answered. Between the answer to one and the call that follows from
 * it nothing is open: what the last one brings has to be seen first.
 */
export async function onceRefreshed(page: Page): Promise<() => Promise<void>> {
  await page.addInitScript(SAYS_THAT_IT_LISTENS);
  const open = new Set<Request>();
  page.on('request', (request) => {
    if (/\/api\//.test(request.url()) && !/\/webhooks\/changes/.test(request.url())) open.add(request);
  });
  for (const ended of ['requestfinished', 'requestfailed'] as const)
    page.on(ended as 'requestfinished', (request) => open.delete(request));
  return async () => {
    await page.locator('html[data-listens]').waitFor();
    await callsAreTold(page);
    await onThePage(() => expect(open.size).toBe(0));
  };
}
