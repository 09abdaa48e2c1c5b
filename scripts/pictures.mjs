// npm run pictures: whether the console looks as its kept pictures do.
import { readArguments } from './arguments.mjs';
import { runWithTestServers } from './test-servers.mjs';

const USAGE = `npm run pictures [-- --update]

--update  keeps what it looks like now`;

const { update: isUpdate } = readArguments(USAGE, { options: { update: { type: 'boolean' } } }).values;
const startedAt = performance.now();
await runWithTestServers({
  name: 'pictures',
  args: ['e2e/console/pictures'],
  environment: isUpdate ? { KEEP_PICTURES: '1' } : {},
});
const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
const did = isUpdate ? 'kept in e2e/console/pictures/kept' : 'compared';
process.stdout.write(process.exitCode === 0 ? `${did} in ${seconds} s\n` : `failed after ${seconds} s\n`);
