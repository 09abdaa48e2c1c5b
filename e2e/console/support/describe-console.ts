import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findChromium, NO_CHROMIUM } from '@runhook/testing';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import type { PersonName } from './people.ts';
import { ELEMENT_TIMEOUT_MS, START_TIMEOUT_MS, STORY_TIMEOUT_MS } from './waiting.ts';
import { watchContext } from './watch-page.ts';
import { openWorld, type World } from './world.ts';

const chromiumPath = findChromium();
if (chromiumPath === null) process.stderr.write(`browser tests are skipped: ${NO_CHROMIUM}\n`);

/** Whether there is one: what is to be started for the tests is not, without. */
export const hasBrowser = chromiumPath !== null;

/** One test's window onto the console: a context of its own, nobody signed in. */
export interface Visit {
  world: World;
  context: BrowserContext;
  page: Page;
  /** Address of a page. @param path below the console's root, with its slash */
  at(path: string): string;
  /** Signs somebody in, without the sign-in page. */
  as(person: PersonName, options?: { fresh?: boolean }): Promise<void>;
  /** Places besides management that the page may talk to: a proxy. */
  ownOrigins: string[];
  /** What went wrong in the browser so far. Empty at the end, or the test fails. */
  problems: string[];
}

interface StoryOptions {
  context?: BrowserContextOptions;
  timeoutMs?: number;
}

export type Story = (name: string, tell: (visit: Visit) => Promise<void>, options?: StoryOptions) => void;

interface ConsoleOptions {
  environment?: Record<string, string>;
  /** What all stories of the file find. */
  prepare?: (world: World) => Promise<void>;
}

/**
 * Browser tests on one browser and one world. Each story gets a context of its own and fails when the page asked
 * another host, broke its policy, or logged an error or a warning. A screenshot of a failure is named in its message.
 */
export function describeConsole(
  title: string,
  define: (story: Story) => void,
  { environment, prepare }: ConsoleOptions = {},
): void {
  const describeIt = chromiumPath === null ? describe.skip : describe;
  describeIt(title, () => {
    let browser: Browser;
    let world: World;
    beforeAll(async () => {
      [browser, world] = await Promise.all([launchBrowser(), openWorld(environment)]);
      await prepare?.(world);
    }, START_TIMEOUT_MS);
    afterAll(async () => {
      await browser?.close();
      await world?.close();
    }, START_TIMEOUT_MS);
    define((name, tell, options = {}) => {
      test(
        name,
        () => runStory(name, tell, { browser, world, options }),
        options.timeoutMs ?? STORY_TIMEOUT_MS,
      );
    });
  });
}

/** The browser of the machine. Root cannot have Chromium's sandbox, and a container's /dev/shm may be small. */
export async function launchBrowser(moreArgs: string[] = []): Promise<Browser> {
  if (chromiumPath === null) throw new Error(NO_CHROMIUM);
  return await chromium.launch({
    executablePath: chromiumPath,
    args: ['--disable-dev-shm-usage', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), ...moreArgs],
  });
}

/** Runs with a browser only, and says otherwise why not. For files that bring their own world. */
export const testInBrowser: (name: string, tell: () => Promise<void>, timeoutMs?: number) => void =
  chromiumPath === null ? test.skip : test;

async function runStory(
  name: string,
  tell: (visit: Visit) => Promise<void>,
  { browser, world, options }: { browser: Browser; world: World; options: StoryOptions },
): Promise<void> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options.context,
  });
  context.setDefaultTimeout(ELEMENT_TIMEOUT_MS);
  const ownOrigins = [world.url];
  const problems = watchContext(context, ownOrigins);
  const page = await context.newPage();
  const as: Visit['as'] = async (person, sessionOptions) => {
    const [cookieName = '', value = ''] = (await world.sessionOf(person, sessionOptions)).split('=');
    await context.addCookies([
      { name: cookieName, value, url: world.url, httpOnly: true, sameSite: 'Strict' },
    ]);
  };
  try {
    await tell({ world, context, page, at: (path) => world.url + path, as, ownOrigins, problems });
    expect(problems).toEqual([]);
  } catch (error) {
    throw await withScreenshot(error, page, name, problems);
  } finally {
    await context.close();
  }
}

/** The failure, with a picture of what the page showed and what the browser complained about. */
export async function withScreenshot(
  error: unknown,
  page: Page,
  name: string,
  problems: readonly string[],
): Promise<unknown> {
  const folder = mkdtempSync(join(process.env.TEST_PICTURES ?? tmpdir(), 'runhook-console-'));
  const file = join(folder, `${name.replaceAll(/\W+/g, '-').slice(0, 80)}.png`);
  const isTaken = await page.screenshot({ path: file, fullPage: true }).then(
    () => true,
    () => false,
  );
  if (!(error instanceof Error)) return error;
  const notes = [
    `at ${page.url()}`,
    isTaken ? `screenshot: ${file}` : 'no screenshot could be taken',
    ...problems,
  ];
  const before = error.message;
  error.message += `\n${notes.join('\n')}`;
  // What is printed is the stack, and that begins with the message as it was.
  error.stack = error.stack?.replace(before, () => error.message) ?? error.message;
  return error;
}
