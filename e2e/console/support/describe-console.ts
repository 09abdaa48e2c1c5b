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

/** Access of one test to the console, without a session. */
export interface Visit {
  world: World;
  context: BrowserContext;
  page: Page;
  /** Returns the URL of a page. @param path below the console's root, with its slash */
  urlOf(path: string): string;
  /** Creates a session of the person without the sign-in page. */
  signInAs(person: PersonName, options?: { fresh?: boolean }): Promise<void>;
  /** Further origins that the page may request, for example a proxy. */
  ownOrigins: string[];
  /** Problems that the browser reported so far. The test fails if any remain at its end. */
  problems: string[];
}

interface StoryOptions {
  viewport?: ViewportSize;
  /**
   * Options of a separate context for this story, in which a page takes three times as long to load. `{}` for a story that
   * changes what pages of a context share: the clock, the network. Other stories share a context.
   */
  context?: BrowserContextOptions;
  timeoutMs?: number;
}

export type Story = (name: string, body: (visit: Visit) => Promise<void>, options?: StoryOptions) => void;

interface ConsoleOptions {
  /** Settings of the services. Descriptions of a test file with the same settings share the services. */
  environment?: Record<string, string>;
  /** Prepares data for all stories of the description. */
  prepare?: (world: World) => Promise<void>;
}

/**
 * Defines browser tests with people and accounts that no other description changes. A test file has one browser, and shares
 * services. Each story gets a context without cookies, and fails if the page requested another host, violated its content
 * security policy, or logged an error or a warning. The message of a failure names a screenshot.
 */
export function describeConsole(
  title: string,
  defineStories: (story: Story) => void,
  { environment, prepare }: ConsoleOptions = {},
): void {
  const describeOrSkip = hasBrowser ? describe : describe.skip;
  describeOrSkip(title, () => {
    let world: World;
    beforeAll(async () => {
      const [services] = await Promise.all([sharedServices(environment), sharedBrowser()]);
      world = await openWorld(services);
      await prepare?.(world);
    }, START_TIMEOUT_MS);
    afterAll(async () => {
      await world?.close();
    }, START_TIMEOUT_MS);
    defineStories((name, body, options = {}) => {
      test(name, () => runStory(name, body, { world, options }), options.timeoutMs ?? STORY_TIMEOUT_MS);
    });
  });
}

interface StoryContext {
  world: World;
  options: StoryOptions;
}

async function runStory(
  name: string,
  body: (visit: Visit) => Promise<void>,
  { world, options }: StoryContext,
): Promise<void> {
  const watchedContext = options.context
    ? await openContext(await sharedBrowser(), world.url, options.context)
    : await sharedContext(world.url);
  const { context, problems } = watchedContext;
  const page = await context.newPage();
  const signInAs: Visit['signInAs'] = async (person, sessionOptions) => {
    const [cookieName = '', value = ''] = (await world.sessionOf(person, sessionOptions)).split('=');
    await context.addCookies([
      { name: cookieName, value, url: world.url, httpOnly: true, sameSite: 'Strict' },
    ]);
  };
  try {
    if (options.viewport) await page.setViewportSize(options.viewport);
    await body({ ...watchedContext, world, page, urlOf: (path) => world.url + path, signInAs });
    expect(problems).toEqual([]);
  } catch (error) {
    throw await withScreenshot(error, page, name, problems);
  } finally {
    await watchedContext.release();
  }
}

/** Adds a screenshot and the problems of the browser to an error. */
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
  // Test runners print the stack, which begins with the original message.
  error.stack = error.stack?.replace(before, () => error.message) ?? error.message;
  return error;
}
