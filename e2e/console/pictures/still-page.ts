import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from '@jest/globals';
import type { Browser, CDPSession, Page, Request } from 'playwright-core';
import { ELEMENT_TIMEOUT_MS, expectOnPage } from '../support/waiting.ts';
import { STILL_NOW_MS, type StillWorld } from './still-world.ts';

export const WIDTHS = [360, 768, 1024, 1440, 2560] as const;
export const THEMES = ['light', 'dark'] as const;
const HEIGHT = 900;

const { resolve } = createRequire(import.meta.url);
const fontFile = (family: string, file: string) =>
  readFileSync(resolve(`@fontsource-variable/${family}/files/${file}-latin-wght-normal.woff2`), 'base64');

/** Replaces the fonts, which differ between machines, and disables animations and the blinking caret. */
const STILL = `
  const fonts = ${JSON.stringify({
    'Still Sans': fontFile('inter', 'inter'),
    'Still Mono': fontFile('jetbrains-mono', 'jetbrains-mono'),
  })};
  for (const [family, base64] of Object.entries(fonts)) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    document.fonts.add(new FontFace(family, bytes, { weight: '100 900' }));
  }
  const styles = new CSSStyleSheet();
  styles.replaceSync(\`
    :root {
      --mantine-font-family: 'Still Sans' !important;
      --mantine-font-family-headings: 'Still Sans' !important;
      --mantine-font-family-monospace: 'Still Mono' !important;
    }
    code, pre, kbd, samp { font-family: 'Still Mono' !important; }
    *, ::before, ::after { animation: none !important; transition: none !important; caret-color: transparent !important; }
  \`);
  document.adoptedStyleSheets = [styles];
`;

/** A page whose pictures are reproducible. */
export interface StillPage {
  page: Page;
  open(path: string): Promise<void>;
  /** Returns a picture of the visible part of the open page, PNG as base64. */
  take(width: number, theme: (typeof THEMES)[number]): Promise<string>;
}

export async function openStillPage(browser: Browser, { url, cookie }: StillWorld): Promise<StillPage> {
  const context = await browser.newContext({
    viewport: { width: WIDTHS[0], height: HEIGHT },
    locale: 'en-GB',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(ELEMENT_TIMEOUT_MS);
  await context.addCookies([{ ...cookie, url, httpOnly: true, sameSite: 'Strict' }]);
  await context.clock.setFixedTime(STILL_NOW_MS);
  await context.addInitScript(STILL);
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  const pendingRequests = trackCalls(page);
  return {
    page,
    async open(path) {
      await page.goto(url + path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      // A page may render its heading before it redirects to its content.
      await page.locator(CONTENT).first().waitFor({ state: 'attached' });
    },
    async take(width, theme) {
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize({ width, height: HEIGHT });
      await page.locator(`html[data-mantine-color-scheme=${theme}]`).waitFor();
      return await waitUntilStill(page, session, pendingRequests);
    },
  };
}

const CONTENT = 'main :is(section, form, table, figure, dl, ul, input)';
const LOADING = '.mantine-Skeleton-root, .mantine-Loader-root';

/** Tracks the pending requests of the page, except the stream of changes. */
function trackCalls(page: Page): ReadonlySet<Request> {
  const pendingRequests = new Set<Request>();
  const removeRequest = (request: Request) => pendingRequests.delete(request);
  page.on('request', (request) => {
    if (!new URL(request.url()).pathname.endsWith('/changes')) pendingRequests.add(request);
  });
  page.on('requestfinished', removeRequest);
  page.on('requestfailed', removeRequest);
  return pendingRequests;
}

/** Takes pictures until two consecutive ones are equal, because the page may still be rendering. */
async function waitUntilStill(
  page: Page,
  session: CDPSession,
  pendingRequests: ReadonlySet<Request>,
): Promise<string> {
  let before = '';
  for (let attempts = 0; attempts < 50; attempts += 1) {
    await expectOnPage(async () => {
      expect(pendingRequests.size).toBe(0);
      expect(await page.locator(LOADING).count()).toBe(0);
    });
    await page.evaluate(
      'document.fonts.ready.then(() => new Promise(requestAnimationFrame)).then(() => null)',
    );
    const { data } = await session.send('Page.captureScreenshot', { format: 'png', optimizeForSpeed: true });
    if (data === before) return data;
    before = data;
  }
  throw new Error(`${page.url()} keeps changing`);
}
