import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContext, BrowserContextOptions, Page, ViewportSize } from 'playwright-core';
import { hasBrowser, sharedBrowser, sharedContext } from './browser.ts';
import { openContext } from './contexts.ts';
import type { PersonName } from './people.ts';
import { sharedServices } from './services.ts';
import { START_TIMEOUT_MS, STORY_TIMEOUT_MS } from './waiting.ts';
import { openWorld, type World } from './world.ts';

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
  viewport?: ViewportSize;
  /**
   * These options open a separate context for this story, in which a page loads three times as long. `{}` for a story that changes what pages of a
   * context share: the clock, the network. Other stories run in a context that they share.
   */
  context?: BrowserContextOptions;
  timeoutMs?: number;
}

export type Story = (name: string, tell: (visit: Visit) => Promise<void>, options?: StoryOptions) => void;

interface ConsoleOptions {
  /** Settings of the services. Descriptions of a test file that have the same settings share the services. */
  environment?: Record<string, string>;
  /** It prepares what all stories of the description need. */
  prepare?: (world: World) => Promise<void>;
}

/**
 * Browser tests in a world of people and accounts that no other description changes. The browser and the services are those of the
 * test file. Each story finds a context without cookies and fails when the page asked another host, broke its policy, or logged an
 * error or a warning. A screenshot of a failure is named in its message.
 */
export function describeConsole(
  title: string,
  define: (story: Story) => void,
  { environment, prepare }: ConsoleOptions = {},
): void {
  const describeIt = hasBrowser ? describe : describe.skip;
  describeIt(title, () => {
    let world: World;
    beforeAll(async () => {
      const [services] = await Promise.all([sharedServices(environment), sharedBrowser()]);
      world = await openWorld(services);
      await prepare?.(world);
    }, START_TIMEOUT_MS);
    afterAll(async () => {
      await world?.close();
    }, START_TIMEOUT_MS);
    define((name, tell, options = {}) => {
      test(name, () => runStory(name, tell, { world, options }), options.timeoutMs ?? STORY_TIMEOUT_MS);
    });
  });
}

interface StoryWorld {
  world: World;
  options: StoryOptions;
}

async function runStory(
  name: string,
  tell: (visit: Visit) => Promise<void>,
  { world, options }: StoryWorld,
): Promise<void> {
  const watched = options.context
    ? await openContext(await sharedBrowser(), world.url, options.context)
    : await sharedContext(world.url);
  const { context, problems } = watched;
  const page = await context.newPage();
  const as: Visit['as'] = async (person, sessionOptions) => {
    const [cookieName = '', value = ''] = (await world.sessionOf(person, sessionOptions)).split('=');
    await context.addCookies([
      { name: cookieName, value, url: world.url, httpOnly: true, sameSite: 'Strict' },
    ]);
  };
  try {
    if (options.viewport) await page.setViewportSize(options.viewport);
    await tell({ ...watched, world, page, at: (path) => world.url + path, as });
    expect(problems).toEqual([]);
  } catch (error) {
    throw await withScreenshot(error, page, name, problems);
  } finally {
    await watched.release();
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
