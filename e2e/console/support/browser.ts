import { afterAll, test } from '@jest/globals';
import { findChromium, NO_CHROMIUM } from '@runhook/testing';
import { type Browser, chromium } from 'playwright-core';
import { openSharedContext, type SharedContext } from './contexts.ts';
import { START_TIMEOUT_MS } from './waiting.ts';

const chromiumPath = findChromium();
if (chromiumPath === null) process.stderr.write(`browser tests are skipped: ${NO_CHROMIUM}\n`);

/** Whether there is one: what is to be started for the tests is not, without. */
export const hasBrowser = chromiumPath !== null;

/** Runs with a browser only, and says otherwise why not. For files that bring their own world. */
export const testInBrowser: (name: string, tell: () => Promise<void>, timeoutMs?: number) => void = hasBrowser
  ? test
  : test.skip;

/** A container's /dev/shm may be small; `openSharedContext` describes the other. */
const ARGUMENTS = ['--disable-dev-shm-usage', '--process-per-site'];

/** The browser of the machine. Root cannot have Chromium's sandbox. */
export async function launchBrowser(moreArgs: string[] = []): Promise<Browser> {
  if (chromiumPath === null) throw new Error(NO_CHROMIUM);
  return await chromium.launch({
    executablePath: chromiumPath,
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
