// npm run typecheck: checks the types of every source and test, as npm test does.
import { prepareSources } from './build/bootstrap.mjs';
import { ALL_PROJECTS, compile } from './build/compile.mjs';
import { readArguments, usage } from './shared/arguments.mjs';
import { step } from './shared/command.mjs';

const USAGE = usage({
  call: 'npm run typecheck',
  purpose: 'checks the types of every source and test, with the result of a fresh clone',
  duration: 'seconds after an edit; 15 seconds at first',
  prerequisites: 'none',
});

readArguments(USAGE, {});
try {
  await prepareSources();
  await step('checking types', () => compile([ALL_PROJECTS]));
} catch (error) {
  process.stderr.write(`\n${error.message}\n`);
  process.exitCode = 1;
}
