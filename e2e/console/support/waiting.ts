import { expect } from '@jest/globals';
import { eventually } from '@runhook/testing';
import type { Page, Request } from 'playwright-core';

// Limits for waits that normally end long before. The machine may be busy, and the tests of the console do not measure speed:
// if a limit is reached, the expected state did not occur.
export const ELEMENT_TIMEOUT_MS = 60_000;
export const STORY_TIMEOUT_MS = 300_000;
export const START_TIMEOUT_MS = 300_000;

/** Calls `eventually` with the timeout for elements. */
export function expectOnPage<T>(assertion: () => T | Promise<T>): Promise<T> {
  return eventually(assertion, { timeoutMs: ELEMENT_TIMEOUT_MS });
}

/** A response that is delayed until the test provides its status. */
export function createPendingResponse(): { status: Promise<number>; respond: (status: number) => void } {
  let respond: (status: number) => void = () => undefined;
  const status = new Promise<number>((resolve) => {
    respond = resolve;
  });
  return { status, respond };
}

/** Resolves when Playwright has reported all calls that the page has started: it reports a call of this function after them. */
async function flushCallEvents(page: Page): Promise<void> {
  await page.evaluate("fetch('/healthz').then((answer) => answer.text())");
}

/** Records calls to matching URLs. The returned function resolves with those that the page has started. */
export function recordCalls(page: Page, address: RegExp): () => Promise<string[]> {
  const calls: string[] = [];
  page.on('request', (request) => {
    if (address.test(request.url())) calls.push(`${request.method()} ${request.url()}`);
  });
  return async () => {
    await flushCallEvents(page);
    return [...calls];
  };
}

/** Marks the page when its stream is open. Playwright may report the response of the stream after the calls that follow it. */
const MARK_EVENT_SOURCE_OPEN = `
  window.EventSource = class extends EventSource {
    constructor(...values) {
      super(...values);
      this.addEventListener('open', () => { document.documentElement.dataset.live = ''; });
    }
  };`;

/**
 * Must be called before a page is opened. The returned function resolves when the page receives changes, has refetched its
 * data, and all its calls have ended. Between a response and the next call no request is open, so the page must have rendered
 * the last response.
 */
export async function waitUntilRefreshed(page: Page): Promise<() => Promise<void>> {
  await page.addInitScript(MARK_EVENT_SOURCE_OPEN);
  const pendingRequests = new Set<Request>();
  page.on('request', (request) => {
    if (/\/api\//.test(request.url()) && !/\/webhooks\/changes/.test(request.url()))
      pendingRequests.add(request);
  });
  for (const eventName of ['requestfinished', 'requestfailed'] as const)
    page.on(eventName as 'requestfinished', (request) => pendingRequests.delete(request));
  return async () => {
    await page.locator('html[data-live]').waitFor();
    await flushCallEvents(page);
    await expectOnPage(() => expect(pendingRequests.size).toBe(0));
  };
}
