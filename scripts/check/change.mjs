import { prepareSources } from '../build/bootstrap.mjs';
import { ALL_PROJECTS, compile } from '../build/compile.mjs';
import { step } from '../shared/command.mjs';
import { changedFiles } from './changed.mjs';
import { lint } from './sources.mjs';
import { testChanged } from './tests.mjs';
import { checkWords } from './words.mjs';

/** Runs every check on the changes since HEAD, including those after one that failed, and sets the exit code. */
export async function checkChange() {
  const files = changedFiles();
  if (files.length > 0) await lint(files);
  try {
    await prepareSources();
    await checkWords();
    await step('checking types', () => compile([ALL_PROJECTS]));
  } catch (error) {
    process.stderr.write(`\n${error.message}\n`);
    process.exitCode = 1;
  }
  await testChanged();
}
