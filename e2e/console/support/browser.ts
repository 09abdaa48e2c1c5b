import { afterAll, test } from '@jest/globals';
import { findChromium, findHeadlessChromium, NO_CHROMIUM } from '@runhook/testing';
import { type Browser, chromium } from 'playwright-core';
import { openSharedContext, type SharedContext } from './contexts.ts';
import { START_TIMEOUT_MS } from './waiting.ts';

const chromiumPath = findHeadlessChromium();
/** The stored pictures were taken with full Chromium; its headless shell renders text differently. */
const picturePath = findChromium();
if (chromiumPath === null) process.stderr.write(`browser tests are skipped: ${NO_CHROMIUM}\n`);
else if (picturePath === null) process.stderr.write(`comparisons of pictures are skipped: ${NO_CHROMIUM}\n`);

type BrowserTest = (name: string, run: () => Promise<void>, timeoutMs?: number) => void;

/** Whether there is a browser. Without one, no services are started for the tests that need it. */
export const hasBrowser = chromiumPath !== null;

/** Skips the test if there is no browser. For files that start their own services. */
export const testInBrowser: BrowserTest = hasBrowser ? test : test.skip;

export const hasPictureBrowser = picturePath !== null;
export const testPictures: BrowserTest = hasPictureBrowser ? test : test.skip;

/** /dev/shm of a container may be small. The other argument: see `openSharedContext`. */
const ARGUMENTS = ['--disable-dev-shm-usage', '--process-per-site'];

export async function launchBrowser(moreArgs: string[] = []): Promise<Browser> {
  return await launch(chromiumPath, moreArgs);
}

export async function launchPictureBrowser(moreArgs: string[] = []): Promise<Browser> {
  return await launch(picturePath, moreArgs);
}

/** Chromium's sandbox is not available to root. */
async function launch(executablePath: string | null, moreArgs: string[]): Promise<Browser> {
  if (executablePath === null) throw new Error(NO_CHROMIUM);
  return await chromium.launch({
    executablePath,
    args: [...ARGUMENTS, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), ...moreArgs],
  });
}

let browser: Promise<Browser> | null = null;
const contexts = new Map<string, SharedContext>();

/** Returns the browser of this test file, and launches another one if it has crashed. */
export async function sharedBrowser(): Promise<Browser> {
  const launched = await browser?.catch(() => null);
  if (!launched?.isConnected()) browser = launchBrowser();
  return await (browser as Promise<Browser>);
}

/** Returns the context that stories on this server share, and opens another one if its browser or its process has crashed. */
export async function sharedContext(url: string): Promise<SharedContext> {
  const opened = contexts.get(url);
  if (opened?.isUsable()) return opened;
  const context = await openSharedContext(await sharedBrowser(), url);
  contexts.set(url, context);
  return context;
}

afterAll(async () => {
  await (await browser?.catch(() => null))?.close();
}, START_TIMEOUT_MS);
