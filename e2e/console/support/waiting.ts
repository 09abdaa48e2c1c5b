import { expect } from '@jest/globals';
import { eventually } from '@runhook/testing';
import type { Page, Request } from 'playwright-core';

// Limits for waits that normally end long before. The machine may be busy, and the tests of the console do not measure speed:
// if a limit is reached, the expected state did not occur.
export const ELEMENT_TIMEOUT_MS = 60_000;
export const STORY_TIMEOUT_MS = 300_000;
export const START_TIMEOUT_MS = 300_000;

/** Calls `eventually` with the timeout for elements. */
export function onThePage<T>(assertion: () => T | Promise<T>): Promise<T> {
  return eventually(assertion, { timeoutMs: ELEMENT_TIMEOUT_MS });
}

/** A response that is delayed until the test provides its status. */
export function held(): { status: Promise<number>; answer: (status: number) => void } {
  let answer: (status: number) => void = () => undefined;
  const status = new Promise<number>((resolve) => {
    answer = resolve;
  });
  return { status, answer };
}

/** Resolves when Playwright has reported all calls that the page has started: it reports a call of this function after them. */
async function callsAreTold(page: Page): Promise<void> {
  await page.evaluate("fetch('/healthz').then((answer) => answer.text())");
}

/** Records calls to matching URLs. The returned function resolves with those that the page has started. */
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

/** Marks the page when its stream is open. Playwright may report the response of the stream after the calls that follow it. */
const SAYS_THAT_IT_LISTENS = `
  window.EventSource = class extends EventSource {
    constructor(...values) {
      super(...values);
      this.addEventListener('open', () => { document.documentElement.dataset.listens = ''; });
    }
  };`;

/**
 * Must be called before a page is opened. The returned function resolves when the page receives changes, has refetched its
 * data, and all its calls have ended. Between a response and the next call no request is open, so the page must have rendered
 * the last response.
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
