// npm test: every test but those of npm run test:long. node scripts/test.mjs <arguments of jest>: only those tests, on the same servers.
import { runSuite } from './test/run/suite.mjs';

await runSuite({ tests: 'short', args: process.argv.slice(2) });
