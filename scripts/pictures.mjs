// npm run pictures: whether the console looks as its kept pictures do; `-- --update` keeps what it looks like now.
import { runWithTestServers } from './test-servers.mjs';

const others = process.argv.slice(2).filter((arg) => arg !== '--update');
if (others.length > 0) {
  process.stderr.write(`unknown: ${others.join(' ')}; there is only --update\n`);
  process.exit(2);
}
const isUpdate = process.argv.includes('--update');
const startedAt = performance.now();
await runWithTestServers({
  name: 'pictures',
  args: ['e2e/console/pictures'],
  environment: isUpdate ? { KEEP_PICTURES: '1' } : {},
});
const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
const did = isUpdate ? 'kept in e2e/console/pictures/kept' : 'compared';
process.stdout.write(process.exitCode === 0 ? `${did} in ${seconds} s\n` : `failed after ${seconds} s\n`);
