// npm test: runs every test but those of npm run test:long.
import { isHelp, usage } from './shared/arguments.mjs';

const USAGE = usage({
  call: 'npm test [-- <part of a path>… <options of jest> --record-costs]',
  purpose:
    'lints, checks types, looks for unused code and runs the tests; with a path only the matching test files',
  duration: '11 minutes on two cores; seconds for one file',
  prerequisites:
    'none; tests use redis-server, chromium, prometheus, kubectl and postgresql where they are installed, and name what they skip',
  details: '--record-costs  writes the duration of each file to scripts/test/run/costs.json',
});

const args = process.argv.slice(2);
if (args.some(isHelp)) process.stdout.write(`usage: ${USAGE}\n`);
else {
  const { runSuite } = await import('./test/run/suite.mjs');
  await runSuite({ tests: 'short', args });
}
