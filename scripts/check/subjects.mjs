// npm run check -- subjects: checks the subjects of the commits of a change.
import { readArguments, usage } from '../shared/arguments.mjs';
import { git } from './changed.mjs';
import { subjectProblem } from './subject-rules.mjs';

const MAIN = 'origin/main';
const USAGE = usage({
  call: 'npm run check -- subjects [<range>]',
  purpose: 'checks that the subjects of commits have at most 72 characters and begin with an imperative',
  duration: 'a second',
  prerequisites: 'git',
  details: `<range>  commits as git log takes them; ${MAIN}..HEAD when omitted`,
});

const { positionals } = readArguments(USAGE, { allowPositionals: true });
const [range = hasMain() ? `${MAIN}..HEAD` : null] = positionals;
if (range === null) process.stdout.write(`subjects: skipped, because there is no ${MAIN}\n`);
else checkSubjects(range);

function hasMain() {
  try {
    git('rev-parse', '--verify', '--quiet', MAIN);
    return true;
  } catch {
    return false;
  }
}

function checkSubjects(commits) {
  const lines = git('log', '--no-merges', '--reverse', '--format=%h %s', commits).split('\n').filter(Boolean);
  const problems = lines.flatMap((line) => {
    const [hash, subject] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)];
    const problem = subjectProblem(subject);
    return problem === null ? [] : [`${hash} "${subject}": ${problem}`];
  });
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.stdout.write(`subjects: ${lines.length} checked, ${problems.length} to change\n`);
  if (problems.length > 0) process.exitCode = 1;
}
