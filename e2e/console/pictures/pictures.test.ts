import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { hasPictureBrowser, launchPictureBrowser, testPictures } from '../support/browser.ts';
import { START_TIMEOUT_MS } from '../support/waiting.ts';
import {
  comparePictures,
  listBaselineFiles,
  takePictures,
  updatesBaseline,
  type Variant,
} from './baseline.ts';
import { openStillWorld, type StillWorld } from './still-world.ts';

/** The test covers one look; pictures.long.test.ts covers all. */
const VARIANT: Variant = { width: 1440, theme: 'light' };

let browser: Browser;
let world: StillWorld;
let calculator: Page;

describe('the console looks like its stored pictures', () => {
  beforeAll(async () => {
    if (!hasPictureBrowser) return;
    [browser, world] = await Promise.all([launchPictureBrowser(), openStillWorld()]);
    calculator = await browser.newPage();
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    await browser?.close();
    await world?.close();
  }, START_TIMEOUT_MS);

  testPictures('matches them on every page, on a desktop', async () => {
    if (updatesBaseline) return;
    expect(await comparePictures(calculator, await takePictures(browser, world, [VARIANT]))).toEqual([]);
  });

  test('has exactly one stored picture of every page at every width, light and dark', () => {
    // An update replaces the pictures at the same time.
    if (updatesBaseline) return;
    const { stored, expected } = listBaselineFiles();
    expect(stored).toEqual(expected);
  });
});
