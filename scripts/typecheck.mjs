// npm run typecheck: checks the types of every source and test, as npm test does.
import { prepareSources } from './bootstrap.mjs';
import { compile, EVERYTHING } from './build/compile.mjs';
import { step } from './command.mjs';

try {
  await prepareSources();
  await step('checking types', () => compile([EVERYTHING]));
} catch (error) {
  process.stderr.write(`\n${error.message}\n`);
  process.exitCode = 1;
}
