import type { Page } from 'playwright-core';
import { axeFindings } from './axe.ts';
import type { Visit } from './describe-console.ts';
import { sidewaysOverflow } from './watch-page.ts';

/** Actions that bring the page from one checked state into the next. */
export const DOCS_STATES: Record<string, (page: Page) => Promise<void>> = {
  closed: async () => {},
  'with operations to be tried and a schema': async (page) => {
    for (const operation of ['updateSubscription', 'deleteSubscription']) {
      const block = page.locator(`#operations-Webhooks-${operation}`);
      await block.locator('.opblock-summary-control').click();
      await block.getByRole('button', { name: 'Try it out' }).click();
    }
    await page.getByRole('textbox', { name: 'Request body' }).waitFor();
    await page.locator('.models-control').click();
    await page.locator('.models .json-schema-2020-12-accordion').first().click();
  },
  'asking for the key': async (page) => {
    await page.locator('.btn.authorize').click();
    await page.locator('.dialog-ux .modal-ux').waitFor();
  },
};

export interface DocsVariant {
  width: number;
  colorScheme: 'light' | 'dark';
}

/** Returns the findings of axe and the sideways overflow of the API page in a state. */
export async function docsProblems(
  { page, urlOf }: Visit,
  state: string,
  variants: readonly DocsVariant[],
): Promise<string[]> {
  // A new page has none of the elements that another state has opened.
  await page.goto('about:blank');
  await page.goto(urlOf('/docs'));
  await page.locator('.opblock').first().waitFor();
  await DOCS_STATES[state]?.(page);
  const found: string[] = [];
  for (const { width, colorScheme } of variants) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await page.locator(`html${colorScheme === 'dark' ? '.dark-mode' : ':not(.dark-mode)'}`).waitFor();
    const name = `${state}, ${colorScheme}, at ${width} px`;
    found.push(...(await sidewaysOverflow(page)).map((element) => `${name}: ${element}`));
    for (const { rule, node } of await axeFindings(page))
      found.push(`${name}: ${rule}: ${node.target} ${node.failureSummary}`);
  }
  return found;
}
