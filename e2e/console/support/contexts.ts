import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core';
import { ELEMENT_TIMEOUT_MS } from './waiting.ts';
import { watchContext } from './watch-page.ts';

export interface WatchedContext {
  context: BrowserContext;
  /** Origins that pages may talk to. */
  ownOrigins: string[];
  /** What went wrong in the browser so far. */
  problems: string[];
}

export interface SharedContext extends WatchedContext {
  /** Closes the pages of a story and removes what they stored. */
  reset(): Promise<void>;
}

export async function openContext(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedContext> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  });
  context.setDefaultTimeout(ELEMENT_TIMEOUT_MS);
  const ownOrigins = [url];
  return { context, ownOrigins, problems: watchContext(context, ownOrigins) };
}

/**
 * A context for several stories, one after another. A page of it stays open: Chromium then draws all pages of the context in
 * one process (`--process-per-site`), which has the scripts of the console compiled. A page loads in half the time.
 */
export async function openSharedContext(browser: Browser, url: string): Promise<SharedContext> {
  const opened = await openContext(browser, url);
  const { context, ownOrigins, problems } = opened;
  const anchor = await context.newPage();
  await anchor.goto(`${url}/healthz`);
  return {
    ...opened,
    async reset() {
      const pages = context.pages().filter((page) => page !== anchor);
      await Promise.all(pages.map((page) => page.close()));
      await anchor.evaluate('localStorage.clear()');
      await context.clearCookies();
      ownOrigins.splice(1);
      problems.splice(0);
    },
  };
}
