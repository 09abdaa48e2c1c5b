import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { hasPictureBrowser, launchPictureBrowser, testPictures } from '../support/browser.ts';
import { START_TIMEOUT_MS } from '../support/waiting.ts';
import { compare, OTHER_BROWSER, SAME_BROWSER, toKept } from './compare.ts';
import { differencesOfLooks, isUpdate, keep, LOOKS, placesOf, takePictures } from './kept-pictures.ts';
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
    if (isUpdate) await keep(calculator, await takePictures(browser, world, LOOKS));
    else expect(await differencesOfLooks(browser, world, calculator, LOOKS)).toEqual([]);
  });

  testPictures('detects a moved button, a missing column and a changed colour', async () => {
    const still = await openStillPage(browser, world);
    await still.open(placesOf(world).webhook);
    const before = await toKept(calculator, await still.take(1440, 'light'));
    const isNoticed = async (styles: string) => {
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
    for (const [what, styles] of Object.entries(CHANGES)) noticed[what] = await isNoticed(styles);
    expect(noticed).toEqual(Object.fromEntries(Object.keys(CHANGES).map((what) => [what, [true, true]])));
    expect(await isNoticed('')).toEqual([false, false]);
    await still.page.context().close();
  });

  testPictures('accepts letters that another browser renders slightly differently', async () => {
    const path = `${placesOf(world).account}/events`;
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
    const kept = await toKept(calculator, one);
    expect((await compare(calculator, kept, another, SAME_BROWSER)).isAlike).toBe(false);
    expect(await compare(calculator, kept, another, OTHER_BROWSER)).toMatchObject({ isAlike: true });
  });
});

const CHANGES = {
  'a button 6 px to the left': 'main a[href$="/edit"] { transform: translateX(-6px) !important; }',
  'a column less': 'main table tr > :nth-child(4) { display: none !important; }',
  'a colour of the surface': 'main table thead { background: #e7f5ff !important; }',
  'a colour of the text': 'main h1 { color: #1864ab !important; }',
  'a word less': 'main h2 { font-size: 0 !important; }',
};
