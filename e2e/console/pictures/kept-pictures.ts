import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { compare, type Likeness, OTHER_BROWSER, SAME_BROWSER, toKept } from './compare.ts';
import { openStillPage, THEMES, WIDTHS } from './still-page.ts';
import type { StillWorld } from './still-world.ts';

export interface Look {
  width: (typeof WIDTHS)[number];
  theme: (typeof THEMES)[number];
}

export const LOOKS: Look[] = THEMES.flatMap((theme) => WIDTHS.map((width) => ({ width, theme })));

/** Whether to replace the stored pictures instead of comparing them: `npm run pictures -- compare --update`. */
export const isUpdate = process.env.KEEP_PICTURES === '1';

type Places = ReturnType<typeof placesOf>;

/** Pages of which pictures are stored. */
const PAGES: Record<string, (places: Places) => string> = {
  webhooks: ({ list }) => list,
  'new-webhook': ({ list }) => `${list}/new`,
  webhook: ({ webhook }) => webhook,
  delivery: ({ delivery }) => delivery,
  runs: ({ account }) => `${account}/runs`,
  events: ({ account }) => `${account}/events`,
};

export function placesOf(world: StillWorld) {
  const account = `/accounts/${world.accountId}`;
  const list = `${account}/settings/webhooks`;
  const webhook = `${list}/${world.webhookIds[0]}`;
  return { account, list, webhook, delivery: `${webhook}/deliveries/${world.deliveryId}` };
}

const KEPT = fileURLToPath(new URL('./kept/', import.meta.url));
const MADE_BY = join(KEPT, 'made-by.json');
const fileOf = (page: string, { width, theme }: Look) => `${page}-${width}-${theme}.png`;

/** Names of the stored pictures, and those that should be stored. */
export function keptFiles(): { stored: string[]; wanted: string[] } {
  const wanted = Object.keys(PAGES).flatMap((page) => LOOKS.map((look) => fileOf(page, look)));
  return {
    stored: readdirSync(KEPT)
      .filter((file) => file.endsWith('.png'))
      .sort(),
    wanted: wanted.sort(),
  };
}

/** Takes a picture of every page in each look, as base64 by the name of its file. */
export async function takePictures(
  browser: Browser,
  world: StillWorld,
  looks: readonly Look[],
): Promise<Map<string, string>> {
  const taken = new Map<string, string>();
  const still = await openStillPage(browser, world);
  for (const [name, pathOf] of Object.entries(PAGES)) {
    await still.open(pathOf(placesOf(world)));
    for (const look of looks) taken.set(fileOf(name, look), await still.take(look.width, look.theme));
  }
  await still.page.context().close();
  return taken;
}

/**
 * Takes the pictures of each look and compares them. A picture that differs is taken again on a page that had no other width: in
 * some runs the fifth width of a page differs by a few pixels, and always the same ones.
 */
export async function differencesOfLooks(
  browser: Browser,
  world: StillWorld,
  calculator: Page,
  looks: readonly Look[],
): Promise<string[]> {
  const taken = await takePictures(browser, world, looks);
  const found: string[] = [];
  for (const look of looks) {
    const ofLook = new Map([...taken].filter(([file]) => file.endsWith(fileOf('', look))));
    if ((await differencesOf(calculator, ofLook)).length === 0) continue;
    found.push(...(await differencesOf(calculator, await takePictures(browser, world, [look]))));
  }
  return found;
}

/** Compares pictures with the stored ones. Returns what differs, with the file of a picture in which it is red. */
async function differencesOf(calculator: Page, taken: ReadonlyMap<string, string>): Promise<string[]> {
  const likeness = likenessFor(calculator.context().browser());
  const found: string[] = [];
  let folder: string | null = null;
  for (const [file, picture] of taken) {
    const problem = await problemOf(calculator, file, picture, likeness);
    if (problem === null) continue;
    folder ??= mkdtempSync(join(tmpdir(), 'runhook-pictures-'));
    writeFileSync(join(folder, `now-${file}`), picture, 'base64');
    writeFileSync(join(folder, `difference-${file}`), problem.difference, 'base64');
    found.push(`${file}: ${problem.told}, see ${join(folder, `difference-${file}`)}`);
  }
  return found;
}

/** Replaces all stored pictures. */
export async function keep(calculator: Page, taken: ReadonlyMap<string, string>): Promise<void> {
  const made = [];
  for (const [file, picture] of taken) made.push({ file, content: await toKept(calculator, picture) });
  for (const file of readdirSync(KEPT)) rmSync(join(KEPT, file));
  for (const { file, content } of made) writeFileSync(join(KEPT, file), content);
  // The JSON must be formatted as the formatter does it.
  writeFileSync(MADE_BY, `{ "chromium": ${majorOf(calculator.context().browser())} }\n`);
}

async function problemOf(
  calculator: Page,
  file: string,
  picture: string,
  likeness: Likeness,
): Promise<{ told: string; difference: string } | null> {
  const path = join(KEPT, file);
  if (!existsSync(path)) return { told: 'no picture is stored', difference: picture };
  const { isAlike, others, difference } = await compare(calculator, readFileSync(path), picture, likeness);
  if (isAlike) return null;
  return {
    told: others === null ? 'the size differs' : `${others} pixels of a square of 32 differ`,
    difference,
  };
}

function likenessFor(of: Browser | null): Likeness {
  const { chromium } = JSON.parse(readFileSync(MADE_BY, 'utf8')) as { chromium: number };
  if (chromium === majorOf(of)) return SAME_BROWSER;
  process.stderr.write(
    `the stored pictures were taken by Chromium ${chromium}, this is ${majorOf(of)}: the comparison is more tolerant\n`,
  );
  return OTHER_BROWSER;
}

function majorOf(of: Browser | null): number {
  return Number.parseInt(of?.version() ?? '', 10);
}
