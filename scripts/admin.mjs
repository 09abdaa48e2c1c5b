// npm run admin: builds the checkout and runs the operators' commands, by default on the database of `npm start`.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bootstrap } from './build/bootstrap.mjs';
import { isHelp, usage } from './shared/arguments.mjs';
import { root } from './shared/workspace.mjs';

const STEP_NOTICE_MS = 1_500;
const PROGRAM = fileURLToPath(new URL('../services/management/dist/admin.js', import.meta.url));
const USAGE = usage({
  call: 'npm run admin -- <command>',
  purpose:
    "runs the operators' commands (docs/administration.md) on the database of npm start, or on that of DATABASE_URL",
  duration: 'seconds once the checkout is built',
  prerequisites: 'a running npm start, or DATABASE_URL and ENCRYPTION_KEYS',
});

/** Prints a step that takes long to standard error, because standard output is for results only. */
async function step(name, work) {
  const timer = setTimeout(() => process.stderr.write(`${name} …\n`), STEP_NOTICE_MS);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}

if (process.argv.length === 3 && isHelp(process.argv[2])) await printHelp();
else {
  await bootstrap({ step });
  const { adminEnvironment } = await import('./dist/home.js');
  Object.assign(process.env, adminEnvironment(root, process.env));
  await import(PROGRAM);
}

/** Prints the help. The list of commands is part of the built program. */
async function printHelp() {
  process.stdout.write(`usage: ${USAGE}\n\n`);
  if (existsSync(PROGRAM)) await import(PROGRAM);
  else process.stdout.write('Run npm run build to list the commands here.\n');
}
