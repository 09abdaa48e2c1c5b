// npm run pictures: compares, takes or measures pages of the console in a browser.
import { runPart, usage } from './shared/arguments.mjs';

const USAGE = usage({
  call: 'npm run pictures -- <part> [--help]',
  purpose: 'compares, takes or measures pages of the console',
  duration: '1 to 10 minutes',
  prerequisites: 'chromium',
  details: `compare      with the pictures in e2e/console/pictures/baseline; --update replaces them
screenshots  of the README and of docs/console.md
lighthouse   how pages load on a slow phone
quiet-tab    what an open page requests while nothing happens`,
});

await runPart(USAGE, {
  compare: () => import('./pictures/compare.mjs'),
  screenshots: () => import('./pictures/screenshots.mjs'),
  lighthouse: () => import('./pictures/lighthouse.mjs'),
  'quiet-tab': () => import('./pictures/quiet-tab.mjs'),
});
