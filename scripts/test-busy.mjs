// npm run test:busy: runs npm test while a busy loop occupies each core.
import { isHelp, usage } from './shared/arguments.mjs';

const USAGE = usage({
  call: 'npm run test:busy [-- <part of a path>… <options of jest>]',
  purpose: 'runs npm test while a busy loop occupies each core, which reveals tests that depend on the clock',
  duration: 'about twice as long as npm test',
  prerequisites: 'as for npm test',
});

const args = process.argv.slice(2);
if (args.some(isHelp)) process.stdout.write(`usage: ${USAGE}\n`);
else {
  const { startBusyLoops } = await import('./test/run/busy-loops.mjs');
  const { runSuite } = await import('./test/run/suite.mjs');
  process.stdout.write(`busy loops: ${startBusyLoops().length}\n`);
  await runSuite({ tests: 'short', args });
}
