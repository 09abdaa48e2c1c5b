import { expect } from '@jest/globals';
import { axeFindings } from '../support/axe.ts';
import type { Visit } from '../support/describe-console.ts';
import { headingOf } from '../support/page-parts.ts';
import { expectOnPage } from '../support/waiting.ts';
import { sidewaysOverflow } from '../support/watch-page.ts';
import type { PageToCheck } from './pages.ts';

const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];
const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 800 };

export type Scheme = 'light' | 'dark';

export async function openPage(visit: Visit, { person, path, heading }: PageToCheck): Promise<void> {
  const { page, context, urlOf, signInAs, world } = visit;
  await context.clearCookies();
  if (person !== null) await signInAs(person);
  await page.goto(urlOf(path(world)));
  await headingOf(page, heading);
  await expectOnPage(async () => expect(await page.locator(LOADING).count()).toBe(0));
}

/** Placeholders of content that is still loading. */
const LOADING = '.mantine-Skeleton-root, .mantine-Loader-root';

/** Returns the findings of axe for the current page, which follows the colour scheme of the system. */
export async function axeProblems({ page }: Visit, name: string, colorScheme: Scheme): Promise<string[]> {
  await page.emulateMedia({ colorScheme });
  await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
  // A scheme changes only colours, so the pass in light has found all other problems.
  const findings = await axeFindings(page, colorScheme === 'dark' ? COLOUR_RULES : undefined);
  return findings.map(
    ({ rule, node }) => `${name}, ${colorScheme}: ${rule}: ${node.html.slice(0, 200)} ${node.failureSummary}`,
  );
}

/** Returns the elements that scroll sideways on a phone. */
export async function overflowOnPhone({ page }: Visit, name: string): Promise<string[]> {
  await page.setViewportSize(PHONE);
  const wide = await waitForNoOverflow(page);
  await page.setViewportSize(DESKTOP);
  return wide.map((element) => `${name}, on a phone: ${element}`);
}

/** Returns elements that scroll sideways, controls that are covered, and headings of columns that are too narrow. */
export async function layoutProblems({ page }: Visit, name: string, widths: number[]): Promise<string[]> {
  const found: string[] = [];
  for (const width of widths) {
    await page.setViewportSize({ width, height: 800 });
    const problems = [
      ...(await waitForNoOverflow(page)),
      ...((await page.evaluate(CUT_HEADINGS)) as string[]),
      ...((await page.evaluate(COVERED)) as string[]),
    ];
    found.push(...problems.map((problem) => `${name}, at ${width} px: ${problem}`));
  }
  await page.setViewportSize(DESKTOP);
  return found;
}

const COLUMN_MIN_PX = 45;
const CUT_HEADINGS = `[...document.querySelectorAll('th')]
  .filter(({ clientWidth }) => clientWidth > 0)
  .filter(({ clientWidth, scrollWidth }) => scrollWidth > clientWidth || clientWidth < ${COLUMN_MIN_PX})
  .map((heading) => 'the column ' + heading.innerText + ' has ' + heading.clientWidth + ' px')`;

/** Checks the topmost element at the centre of each control, scrolled into view. A label may cover its control. */
const COVERED = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [role=tab]')]
  .filter((element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
  .flatMap((element) => {
    element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    const { left, top, right, bottom, width, height } = element.getBoundingClientRect();
    // Such elements are for screen readers only, or become visible with the focus.
    if (width < 2 || height < 2 || right <= 0 || bottom <= 0) return [];
    const above = document.elementFromPoint(left + width / 2, top + height / 2);
    const isOwn = above !== null && (element.contains(above) || above.contains(element) || (element.labels ?? []).length > 0
      && [...element.labels].some((label) => label.contains(above)));
    return isOwn ? [] : [element.outerHTML.slice(0, 100) + ' is under ' + (above?.outerHTML.slice(0, 100) ?? 'nothing')];
  })`;

/** The page reacts to its width with a delay. Elements that are still too wide after that are reported. */
async function waitForNoOverflow(page: Visit['page']): Promise<string[]> {
  let wide: string[] = [];
  const settled = expectOnPage(async () => {
    wide = await sidewaysOverflow(page);
    expect(wide).toEqual([]);
  });
  await settled.catch(() => {});
  return wide;
}
