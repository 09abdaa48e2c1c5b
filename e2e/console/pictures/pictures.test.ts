import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { hasBrowser, launchBrowser, testInBrowser } from '../support/describe-console.ts';
import { START_TIMEOUT_MS } from '../support/waiting.ts';
import { compare, OTHER_BROWSER, SAME_BROWSER, toKept } from './compare.ts';
import { openStillPage, THEMES, WIDTHS } from './still-page.ts';
import { openStillWorld, type StillWorld } from './still-world.ts';

/** Another page is another line. */
const PAGES: Record<string, (place: ReturnType<typeof places>) => string> = {
  webhooks: ({ list }) => list,
  'new-webhook': ({ list }) => `${list}/new`,
  webhook: ({ webhook }) => webhook,
  delivery: ({ delivery }) => delivery,
  runs: ({ account }) => `${account}/runs`,
  events: ({ account }) => `${account}/events`,
};

const KEPT = fileURLToPath(new URL('./kept/', import.meta.url));
const MADE_BY = join(KEPT, 'made-by.json');
/** `npm run pictures -- compare --update`: what is seen now is what shall be seen. */
const isUpdate = process.env.KEEP_PICTURES === '1';

let browser: Browser;
let world: StillWorld;
let calculator: Page;
const places = () => {
  const account = `/accounts/${world.accountId}`;
  const list = `${account}/settings/webhooks`;
  const webhook = `${list}/${world.webhookIds[0]}`;
  return { account, list, webhook, delivery: `${webhook}/deliveries/${world.deliveryId}` };
};

describe('the console looks as it did', () => {
  beforeAll(async () => {
    if (!hasBrowser) return;
    [browser, world] = await Promise.all([launchBrowser(), openStillWorld()]);
    calculator = await browser.newPage();
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    await browser?.close();
    await world?.close();
  }, START_TIMEOUT_MS);

  testInBrowser('on every page that pictures are kept of, at five widths, light and dark', async () => {
    const likeness = likenessFor(browser);
    const found: string[] = [];
    const taken = new Map<string, string>();
    let folder: string | null = null;
    for (const [name, pathOf] of Object.entries(PAGES)) {
      const still = await openStillPage(browser, world);
      await still.open(pathOf(places()));
      for (const theme of THEMES)
        for (const width of WIDTHS) {
          const file = `${name}-${width}-${theme}.png`;
          const picture = await still.take(width, theme);
          taken.set(file, picture);
          const problem = isUpdate ? null : await problemOf(file, picture, likeness);
          if (problem === null) continue;
          folder ??= mkdtempSync(join(tmpdir(), 'runhook-pictures-'));
          writeFileSync(join(folder, `now-${file}`), picture, 'base64');
          writeFileSync(join(folder, `difference-${file}`), problem.difference, 'base64');
          found.push(
            `${name} at ${width} px, ${theme}: ${problem.told}, see ${join(folder, `difference-${file}`)}`,
          );
        }
      await still.page.context().close();
    }
    if (isUpdate) await keep(taken);
    expect(found).toEqual([]);
    const kept = readdirSync(KEPT).filter((file) => file.endsWith('.png'));
    expect(kept.sort()).toEqual([...taken.keys()].sort());
  });

  testInBrowser(
    'and whoever moves a button, leaves out a column or takes another colour is told',
    async () => {
      const still = await openStillPage(browser, world);
      await still.open(places().webhook);
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
    },
  );

  testInBrowser('while letters that another browser draws a little differently pass', async () => {
    const path = `${places().account}/events`;
    const pictures = [];
    const other = await launchBrowser(['--disable-font-subpixel-positioning']);
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

async function keep(taken: Map<string, string>): Promise<void> {
  const made = [];
  for (const [file, picture] of taken) made.push({ file, content: await toKept(calculator, picture) });
  for (const file of readdirSync(KEPT)) rmSync(join(KEPT, file));
  for (const { file, content } of made) writeFileSync(join(KEPT, file), content);
  // As the formatter has it.
  writeFileSync(MADE_BY, `{ "chromium": ${majorOf(browser)} }\n`);
}

async function problemOf(
  file: string,
  picture: string,
  likeness: typeof SAME_BROWSER,
): Promise<{ told: string; difference: string } | null> {
  const path = join(KEPT, file);
  if (!existsSync(path)) return { told: 'none is kept', difference: picture };
  const { isAlike, others, difference } = await compare(calculator, readFileSync(path), picture, likeness);
  if (isAlike) return null;
  return { told: others === null ? 'it has another size' : `${others} pixels of a square of 32`, difference };
}

function likenessFor(of: Browser) {
  if (isUpdate) return SAME_BROWSER;
  const { chromium } = JSON.parse(readFileSync(MADE_BY, 'utf8')) as { chromium: number };
  if (chromium === majorOf(of)) return SAME_BROWSER;
  process.stderr.write(
    `the kept pictures are of Chromium ${chromium}, this is ${majorOf(of)}: they are compared more coarsely\n`,
  );
  return OTHER_BROWSER;
}

function majorOf(of: Browser): number {
  return Number.parseInt(of.version(), 10);
}
