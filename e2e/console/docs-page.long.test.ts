import { expect } from '@jest/globals';
import { describeConsole } from './support/describe-console.ts';
import { DOCS_STATES, type DocsVariant, docsProblems } from './support/docs-page.ts';

const VARIANTS: DocsVariant[] = [
  { width: 390, colorScheme: 'light' },
  { width: 1440, colorScheme: 'dark' },
];

describeConsole('the page of the API reference', (story) => {
  story(
    'passes the axe checks in every state, in the light scheme on a phone and in the dark one on a desktop',
    async (visit) => {
      const found: string[] = [];
      for (const state of Object.keys(DOCS_STATES))
        found.push(...(await docsProblems(visit, state, VARIANTS)));
      expect(found).toEqual([]);
    },
  );
});
