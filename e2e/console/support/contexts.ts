import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core';
import { ELEMENT_TIMEOUT_MS } from './waiting.ts';
import { watchContext } from './watch-page.ts';

export interface WatchedContext {
  context: BrowserContext;
  /** Origins that pages may request. */
  ownOrigins: string[];
  /** Problems that the browser reported so far. */
  problems: string[];
  /** Must be called at the end of a story. */
  release(): Promise<void>;
}

export interface SharedContext extends WatchedContext {
  /** Whether the context can be used: false once its browser or the process that draws its pages has crashed. */
  isUsable(): boolean;
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
  const problems = watchContext(context, ownOrigins);
  return { context, ownOrigins, problems, release: () => context.close() };
}

/**
 * Opens a context for consecutive stories. One of its pages stays open: Chromium then renders all pages of the context in one
 * process (`--process-per-site`), which has compiled the console's scripts. A page loads in half the time.
 */
export async function openSharedContext(browser: Browser, url: string): Promise<SharedContext> {
  const opened = await openContext(browser, url);
  const { context, ownOrigins, problems } = opened;
  const anchor = await context.newPage();
  let hasCrashed = false;
  anchor.once('crash', () => {
    hasCrashed = true;
  });
  await anchor.goto(`${url}/healthz`);
  const isUsable = () => !hasCrashed && browser.isConnected();
  return {
    ...opened,
    isUsable,
    /** Closes the pages of the story and removes what they stored. */
    async release() {
      if (!isUsable()) return await context.close();
      const pages = context.pages().filter((page) => page !== anchor);
      await Promise.all(pages.map((page) => page.close()));
      await anchor.evaluate('localStorage.clear()');
      await context.clearCookies();
      ownOrigins.splice(1);
      problems.splice(0);
    },
  };
}
