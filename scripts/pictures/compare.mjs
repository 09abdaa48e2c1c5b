// npm run pictures -- compare: compares the console with its stored pictures.
import { readArguments, usage } from '../shared/arguments.mjs';
import { runWithTestServers } from '../test/run/servers.mjs';

const USAGE = usage({
  call: 'npm run pictures -- compare [--update]',
  purpose: 'compares the pages of the console with the pictures in e2e/console/pictures/baseline',
  duration: '2 minutes',
  prerequisites: 'chromium',
  details: '--update  replaces the pictures by the current pages',
});

const { update: isUpdate } = readArguments(USAGE, { options: { update: { type: 'boolean' } } }).values;
const startedAt = performance.now();
await runWithTestServers({
  name: 'pictures',
  args: ['e2e/console/pictures'],
  environment: isUpdate ? { UPDATE_PICTURES: '1' } : {},
});
const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
const did = isUpdate ? 'stored in e2e/console/pictures/baseline' : 'compared';
process.stdout.write(process.exitCode === 0 ? `${did} in ${seconds} s\n` : `failed after ${seconds} s\n`);
