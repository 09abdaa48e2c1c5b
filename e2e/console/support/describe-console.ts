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
import { openContext, openSharedContext, type SharedContext } from './contexts.ts';
import type { PersonName } from './people.ts';
import { START_TIMEOUT_MS, STORY_TIMEOUT_MS } from './waiting.ts';
import { openWorld, type World } from './world.ts';

const chromiumPath = findChromium();
if (chromiumPath === null) process.stderr.write(`browser tests are skipped: ${NO_CHROMIUM}\n`);

/** Whether there is one: what is to be started for the tests is not, without. */
export const hasBrowser = chromiumPath !== null;

/** One test's window onto the console, where nobody is signed in. */
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
  /**
   * Of a context for this story alone. `{}` for a story that changes what pages of a context share: the clock, the network.
   * Other stories run in the context of the file.
   */
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
 * Browser tests on one browser and one world. Each story finds a context without cookies and fails when the page asked
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
    let shared: SharedContext;
    beforeAll(async () => {
      [browser, world] = await Promise.all([launchBrowser(), openWorld(environment)]);
      [shared] = await Promise.all([openSharedContext(browser, world.url), prepare?.(world)]);
    }, START_TIMEOUT_MS);
    afterAll(async () => {
      await browser?.close();
      await world?.close();
    }, START_TIMEOUT_MS);
    define((name, tell, options = {}) => {
      test(
        name,
        () => runStory(name, tell, { browser, world, shared, options }),
        options.timeoutMs ?? STORY_TIMEOUT_MS,
      );
    });
  });
}

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

/** Runs with a browser only, and says otherwise why not. For files that bring their own world. */
export const testInBrowser: (name: string, tell: () => Promise<void>, timeoutMs?: number) => void =
  chromiumPath === null ? test.skip : test;

interface StoryWorld {
  browser: Browser;
  world: World;
  shared: SharedContext;
  options: StoryOptions;
}

async function runStory(
  name: string,
  tell: (visit: Visit) => Promise<void>,
  { browser, world, shared, options }: StoryWorld,
): Promise<void> {
  const isOwn = options.context !== undefined;
  const watched = isOwn ? await openContext(browser, world.url, options.context) : shared;
  const { context, problems } = watched;
  const page = await context.newPage();
  const as: Visit['as'] = async (person, sessionOptions) => {
    const [cookieName = '', value = ''] = (await world.sessionOf(person, sessionOptions)).split('=');
    await context.addCookies([
      { name: cookieName, value, url: world.url, httpOnly: true, sameSite: 'Strict' },
    ]);
  };
  try {
    await tell({ ...watched, world, page, at: (path) => world.url + path, as });
    expect(problems).toEqual([]);
  } catch (error) {
    throw await withScreenshot(error, page, name, problems);
  } finally {
    await (isOwn ? context.close() : shared.reset());
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
