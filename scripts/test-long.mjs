// npm run test:long: runs the tests in *.long.test.ts.
import { isHelp, usage } from './shared/arguments.mjs';

const USAGE = usage({
  call: 'npm run test:long [-- <part of a path>… <options of jest> --record-costs]',
  purpose:
    'runs the tests in *.long.test.ts: faults for minutes, pictures of all themes and widths, the simulator',
  duration: '5 minutes on two cores',
  prerequisites:
    'none; tests use redis-server and chromium where they are installed, and name what they skip',
  details: '--record-costs  writes the duration of each file to scripts/test/run/costs.json',
});

const args = process.argv.slice(2);
if (args.some(isHelp)) process.stdout.write(`usage: ${USAGE}\n`);
else {
  const { runSuite } = await import('./test/run/suite.mjs');
  await runSuite({ tests: 'long', args });
}
