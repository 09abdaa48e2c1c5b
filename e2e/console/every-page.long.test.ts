import { expect } from '@jest/globals';
import { axeProblems, layoutProblems, openPage, overflowOnPhone } from './every-page/checks.ts';
import { PAGES } from './every-page/pages.ts';
import { prepareWorld } from './every-page/world.ts';
import { describeConsole } from './support/describe-console.ts';
import { STORY_TIMEOUT_MS } from './support/waiting.ts';

const WIDTHS = [360, 768, 1024, 1440, 2560];

describeConsole(
  'every page, dark and at five widths, and its dialogs and menus, light and dark',
  (story) => {
    story(
      'passes the axe checks; nothing scrolls sideways, and nothing of a page is covered or cut off',
      async (visit) => {
        const found: string[] = [];
        for (const checkedPages of PAGES) {
          await openPage(visit, checkedPages);
          found.push(...(await axeProblems(visit, checkedPages.name, 'dark')));
          found.push(...(await layoutProblems(visit, checkedPages.name, WIDTHS)));
          for (const [state, showState] of Object.entries(checkedPages.states ?? {})) {
            const name = `${checkedPages.name}, ${state}`;
            await showState(visit);
            found.push(...(await axeProblems(visit, name, 'light')));
            found.push(...(await axeProblems(visit, name, 'dark')));
            found.push(...(await overflowOnPhone(visit, name)));
          }
        }
        expect(found).toEqual([]);
      },
      { timeoutMs: 3 * STORY_TIMEOUT_MS },
    );
  },
  { prepare: prepareWorld },
);
