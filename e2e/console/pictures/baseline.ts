import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import {
  type ComparisonTolerance,
  compare,
  OTHER_BROWSER,
  SAME_BROWSER,
  toStoredPicture,
} from './compare.ts';
import { openStillPage, THEMES, WIDTHS } from './still-page.ts';
import type { StillWorld } from './still-world.ts';

export interface Variant {
  width: (typeof WIDTHS)[number];
  theme: (typeof THEMES)[number];
}

export const VARIANTS: Variant[] = THEMES.flatMap((theme) => WIDTHS.map((width) => ({ width, theme })));

/** Whether to replace the stored pictures instead of comparing them: `npm run pictures -- compare --update`. */
export const updatesBaseline = process.env.UPDATE_PICTURES === '1';

type PagePaths = ReturnType<typeof listPagePaths>;

/** Pages of which pictures are stored. */
const PAGES: Record<string, (paths: PagePaths) => string> = {
  webhooks: ({ list }) => list,
  'new-webhook': ({ list }) => `${list}/new`,
  webhook: ({ webhook }) => webhook,
  delivery: ({ delivery }) => delivery,
  runs: ({ account }) => `${account}/runs`,
  events: ({ account }) => `${account}/events`,
};

export function listPagePaths(world: StillWorld) {
  const account = `/accounts/${world.accountId}`;
  const list = `${account}/settings/webhooks`;
  const webhook = `${list}/${world.webhookIds[0]}`;
  return { account, list, webhook, delivery: `${webhook}/deliveries/${world.deliveryId}` };
}

const BASELINE_FOLDER = fileURLToPath(new URL('./baseline/', import.meta.url));
const MADE_BY_FILE = join(BASELINE_FOLDER, 'made-by.json');
const fileOf = (page: string, { width, theme }: Variant) => `${page}-${width}-${theme}.png`;

/** Names of the stored pictures, and those that should be stored. */
export function listBaselineFiles(): { stored: string[]; expected: string[] } {
  const expected = Object.keys(PAGES).flatMap((page) => VARIANTS.map((variant) => fileOf(page, variant)));
  return {
    stored: readdirSync(BASELINE_FOLDER)
      .filter((file) => file.endsWith('.png'))
      .sort(),
    expected: expected.sort(),
  };
}

/** Takes a picture of every page in each look, as base64 by the name of its file. */
export async function takePictures(
  browser: Browser,
  world: StillWorld,
  variants: readonly Variant[],
): Promise<Map<string, string>> {
  const pictures = new Map<string, string>();
  const stillPage = await openStillPage(browser, world);
  for (const [name, pathOf] of Object.entries(PAGES)) {
    await stillPage.open(pathOf(listPagePaths(world)));
    for (const variant of variants)
      pictures.set(fileOf(name, variant), await stillPage.take(variant.width, variant.theme));
  }
  await stillPage.page.context().close();
  return pictures;
}

/** Compares pictures with the stored ones. Returns what differs, with the file of a picture in which it is red. */
export async function comparePictures(
  calculator: Page,
  pictures: ReadonlyMap<string, string>,
): Promise<string[]> {
  const likeness = toleranceFor(calculator.context().browser());
  const differences: string[] = [];
  let folder: string | null = null;
  for (const [file, picture] of pictures) {
    const problem = await findDifference(calculator, file, picture, likeness);
    if (problem === null) continue;
    folder ??= mkdtempSync(join(tmpdir(), 'runhook-pictures-'));
    writeFileSync(join(folder, `now-${file}`), picture, 'base64');
    writeFileSync(join(folder, `difference-${file}`), problem.difference, 'base64');
    differences.push(`${file}: ${problem.description}, see ${join(folder, `difference-${file}`)}`);
  }
  return differences;
}

/** Replaces all stored pictures. */
export async function storeBaseline(calculator: Page, pictures: ReadonlyMap<string, string>): Promise<void> {
  const encoded = [];
  for (const [file, picture] of pictures)
    encoded.push({ file, content: await toStoredPicture(calculator, picture) });
  for (const file of readdirSync(BASELINE_FOLDER)) rmSync(join(BASELINE_FOLDER, file));
  for (const { file, content } of encoded) writeFileSync(join(BASELINE_FOLDER, file), content);
  // The JSON must be formatted as the formatter does it.
  writeFileSync(MADE_BY_FILE, `{ "chromium": ${majorVersion(calculator.context().browser())} }\n`);
}

async function findDifference(
  calculator: Page,
  file: string,
  picture: string,
  likeness: ComparisonTolerance,
): Promise<{ description: string; difference: string } | null> {
  const path = join(BASELINE_FOLDER, file);
  if (!existsSync(path)) return { description: 'no picture is stored', difference: picture };
  const { isAlike, others, difference } = await compare(calculator, readFileSync(path), picture, likeness);
  if (isAlike) return null;
  return {
    description: others === null ? 'the size differs' : `${others} pixels of a square of 32 differ`,
    difference,
  };
}

function toleranceFor(browser: Browser | null): ComparisonTolerance {
  const { chromium } = JSON.parse(readFileSync(MADE_BY_FILE, 'utf8')) as { chromium: number };
  if (chromium === majorVersion(browser)) return SAME_BROWSER;
  process.stderr.write(
    `the stored pictures were taken by Chromium ${chromium}, this is ${majorVersion(browser)}: the comparison is more tolerant\n`,
  );
  return OTHER_BROWSER;
}

function majorVersion(browser: Browser | null): number {
  return Number.parseInt(browser?.version() ?? '', 10);
}
