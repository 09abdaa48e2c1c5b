import { expect } from '@jest/globals';
import { axeProblems, layoutProblems, openPage, PHONE } from '../every-page/checks.ts';
import { PAGES } from '../every-page/pages.ts';
import { prepareWorld } from '../every-page/world.ts';
import { describeConsole } from '../support/describe-console.ts';
import { docsProblems } from '../support/docs-page.ts';
import { headingOf } from '../support/page-parts.ts';
import { STORY_TIMEOUT_MS } from '../support/waiting.ts';

describeConsole(
  'every page',
  (story) => {
    // every-page.long.test.ts also checks the dark scheme, five other widths, dialogs and menus.
    story(
      'passes the axe checks and fits a phone: nothing scrolls sideways or is covered',
      async (visit) => {
        const found: string[] = [];
        for (const checkedPages of PAGES) {
          await openPage(visit, checkedPages);
          found.push(...(await axeProblems(visit, checkedPages.name, 'light')));
          found.push(...(await layoutProblems(visit, checkedPages.name, [PHONE.width])));
        }
        expect(found).toEqual([]);
      },
      { timeoutMs: 3 * STORY_TIMEOUT_MS },
    );

    // docs-page.long.test.ts checks the other states and looks.
    story('passes the axe checks and fits a phone, also the API reference', async (visit) => {
      const phoneVariant = { width: PHONE.width, colorScheme: 'light' } as const;
      expect(await docsProblems(visit, 'closed', [phoneVariant])).toEqual([]);
    });

    story(
      'is reachable on a phone through the navigation drawer',
      async ({ page, urlOf, signInAs }) => {
        await signInAs('ada');
        await page.goto(urlOf('/'));
        await headingOf(page, 'Webhooks');
        await page.getByRole('button', { name: 'Open the navigation' }).click();
        const drawer = page.getByRole('dialog', { name: 'Navigation' });
        await drawer.getByRole('link', { name: 'API Access' }).click();
        await headingOf(page, 'API Access');
        await drawer.waitFor({ state: 'hidden' });
        await page.getByRole('link', { name: 'Runhook, your webhooks' }).click();
        await headingOf(page, 'Webhooks');
        const cards = page.getByRole('list', { name: 'Webhooks' }).getByRole('listitem');
        await cards.first().waitFor();
        expect(await page.getByRole('table').count()).toBe(0);
        await page.getByRole('link', { name: 'Create New Webhook' }).click();
        await headingOf(page, 'Create New Webhook');
      },
      { context: { viewport: PHONE, hasTouch: true, isMobile: true } },
    );
  },
  { prepare: prepareWorld },
);
