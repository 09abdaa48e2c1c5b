import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { hasPictureBrowser, launchPictureBrowser, testPictures } from '../support/browser.ts';
import { START_TIMEOUT_MS } from '../support/waiting.ts';
import {
  comparePictures,
  listPagePaths,
  storeBaseline,
  takePictures,
  updatesBaseline,
  VARIANTS,
} from './baseline.ts';
import { compare, OTHER_BROWSER, SAME_BROWSER, toStoredPicture } from './compare.ts';
import { openStillPage } from './still-page.ts';
import { openStillWorld, type StillWorld } from './still-world.ts';

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

  testPictures('matches them on every page, at five widths, light and dark', async () => {
    if (updatesBaseline) await storeBaseline(calculator, await takePictures(browser, world, VARIANTS));
    else expect(await comparePictures(calculator, await takePictures(browser, world, VARIANTS))).toEqual([]);
  });

  testPictures('the comparison detects a moved button, a missing column and a changed colour', async () => {
    const still = await openStillPage(browser, world);
    await still.open(listPagePaths(world).webhook);
    const before = await toStoredPicture(calculator, await still.take(1440, 'light'));
    const detectsChange = async (styles: string) => {
      await still.page.evaluate(
        `document.adoptedStyleSheets[1] ??= new CSSStyleSheet(); document.adoptedStyleSheets[1].replaceSync(${JSON.stringify(styles)})`,
      );
      const after = await still.take(1440, 'light');
      const judged = [];
      for (const likeness of [SAME_BROWSER, OTHER_BROWSER])
        judged.push(!(await compare(calculator, before, after, likeness)).isAlike);
      return judged;
    };
    const noticed: Record<string, boolean[]> = {};
    for (const [what, styles] of Object.entries(CHANGES)) noticed[what] = await detectsChange(styles);
    expect(noticed).toEqual(Object.fromEntries(Object.keys(CHANGES).map((what) => [what, [true, true]])));
    expect(await detectsChange('')).toEqual([false, false]);
    await still.page.context().close();
  });

  testPictures('the less strict comparison accepts how another browser renders letters', async () => {
    const path = `${listPagePaths(world).account}/events`;
    const pictures = [];
    const other = await launchPictureBrowser(['--disable-font-subpixel-positioning']);
    for (const by of [browser, other]) {
      const still = await openStillPage(by, world);
      await still.open(path);
      pictures.push(await still.take(1440, 'light'));
      await still.page.context().close();
    }
    await other.close();
    const [one = '', another = ''] = pictures;
    const stored = await toStoredPicture(calculator, one);
    expect((await compare(calculator, stored, another, SAME_BROWSER)).isAlike).toBe(false);
    expect(await compare(calculator, stored, another, OTHER_BROWSER)).toMatchObject({ isAlike: true });
  });
});

const CHANGES = {
  'a button 6 px to the left': 'main a[href$="/edit"] { transform: translateX(-6px) !important; }',
  'a column less': 'main table tr > :nth-child(4) { display: none !important; }',
  'a colour of the surface': 'main table thead { background: #e7f5ff !important; }',
  'a colour of the text': 'main h1 { color: #1864ab !important; }',
  'a word less': 'main h2 { font-size: 0 !important; }',
};
