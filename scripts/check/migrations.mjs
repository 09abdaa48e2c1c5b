// npm run check -- migrations: checks that the migrations since the baseline can run while the previous release works: none locks a
// table for long, and none removes anything that release reads.
import { existsSync, readFileSync } from 'node:fs';
import { bootstrap } from '../build/bootstrap.mjs';
import { readArguments, rejectArguments, usage } from '../shared/arguments.mjs';
import { BASELINE, checkMigration, newMigrations } from './migration-rules.mjs';

const USAGE = usage({
  call: 'npm run check -- migrations [<file>…]',
  purpose:
    'checks that new migrations can run while the previous release works: no long lock, nothing removed',
  duration: 'seconds',
  prerequisites: 'none',
  details: '<file>  checks these files; the migrations since the baseline when omitted',
});

const { positionals: files } = readArguments(USAGE, { allowPositionals: true });
const missing = files.find((file) => !existsSync(file));
if (missing !== undefined) rejectArguments(`there is no file ${missing}`);
await bootstrap();
const migrations =
  files.length === 0 ? newMigrations() : files.map((name) => ({ name, sql: readFileSync(name, 'utf8') }));
let problems = 0;
for (const { name, sql } of migrations) {
  const findings = checkMigration(sql);
  if (findings === null) {
    process.stdout.write('skipped: squawk has no program for this platform\n');
    break;
  }
  problems += findings.length;
  for (const { line, rule, message } of findings)
    process.stdout.write(`${name}:${line}: ${rule}: ${message}\n`);
}
process.stdout.write(
  `${migrations.length} migrations ${files.length === 0 ? `since ${BASELINE}` : 'in the arguments'}, ${problems} problems\n`,
);
if (problems > 0)
  process.stdout.write(
    'To permit a statement, add a comment above it: "-- allows <rule>: <reason>". docs/deployment.md lists alternatives.\n',
  );
process.exitCode = problems === 0 ? 0 : 1;
