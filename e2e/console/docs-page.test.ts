import { expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { axeFindings } from './support/axe.ts';
import { describeConsole } from './support/describe-console.ts';
import { sidewaysOverflow } from './support/watch-page.ts';

/** Brings the page from one state that is looked at into the next. */
const STATES: Record<string, (page: Page) => Promise<void>> = {
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

const LOOKS = [
  { width: 390, colorScheme: 'light' },
  { width: 1440, colorScheme: 'dark' },
] as const;

describeConsole('the page of the API', (story) => {
  story(
    'has no violation that axe finds in any state, light and dark, on a phone and on a desktop',
    async ({ page, at }) => {
      const found: string[] = [];
      for (const [state, bring] of Object.entries(STATES)) {
        // A page of its own for each: what another has opened is not there.
        await page.goto('about:blank');
        await page.goto(at('/docs'));
        await page.locator('.opblock').first().waitFor();
        await bring(page);
        for (const { width, colorScheme } of LOOKS) {
          await page.setViewportSize({ width, height: 900 });
          await page.emulateMedia({ colorScheme });
          await page.locator(`html${colorScheme === 'dark' ? '.dark-mode' : ':not(.dark-mode)'}`).waitFor();
          const name = `${state}, ${colorScheme}, at ${width} px`;
          found.push(...(await sidewaysOverflow(page)).map((element) => `${name}: ${element}`));
          for (const { rule, node } of await axeFindings(page))
            found.push(`${name}: ${rule}: ${node.target} ${node.failureSummary}`);
        }
      }
      expect(found).toEqual([]);
    },
  );
});
