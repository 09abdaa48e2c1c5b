// npm run build -- packages: writes the packages that users install, as tarballs in .runhook/packages/, each next to its source
// folder:
// npm publish .runhook/packages/receiver --dry-run
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readArguments, rejectArguments, usage } from '../shared/arguments.mjs';
import { run } from '../shared/command.mjs';
import { root } from '../shared/workspace.mjs';
import { bootstrap } from './bootstrap.mjs';
import { publishedPackages, stagePackage } from './package-build.mjs';

const USAGE = usage({
  call: 'npm run build -- packages [<name>… --out <folder> --check]',
  purpose: 'packs the packages that users install, as tarballs in .runhook/packages/',
  duration: 'half a minute once the checkout is built',
  prerequisites: 'none',
  details: `<name>   packs only this package, for example receiver for @runhook/receiver
--out    output folder; .runhook/packages when omitted
--check  runs publint and Are the types wrong? on each, and fails if they report anything`,
});

const { values, positionals } = readArguments(USAGE, {
  options: {
    out: { type: 'string', default: join(root, '.runhook', 'packages') },
    check: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const packages = publishedPackages().map((one) => ({
  ...one,
  short: one.manifest.name.replace(/^.*\//, ''),
}));
const unknown = positionals.find((name) => packages.every(({ short }) => short !== name));
if (unknown !== undefined) rejectArguments(`no published package has the name ${unknown}`);

await bootstrap();
const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const wanted = packages.filter(({ short }) => positionals.length === 0 || positionals.includes(short));
for (const line of await Promise.all(wanted.map(pack))) console.log(line);

async function pack({ short, ...source }) {
  const staged = join(out, short);
  await stagePackage(source, staged);
  const args = ['pack', '--json', '--loglevel=error', '--pack-destination', out];
  const output = await run('npm', args, { cwd: staged, name: `npm pack of ${short}` });
  const [{ filename, size }] = JSON.parse(output);
  const tarball = join(out, filename);
  if (values.check) await check(short, staged, tarball);
  return `${tarball}  ${Math.ceil(size / 1024)} KB`;
}

async function check(short, staged, tarball) {
  const { findPackageProblems } = await import('./package-problems.mjs');
  const problems = await findPackageProblems(staged, tarball);
  for (const problem of problems) process.stderr.write(`${short}: ${problem}\n`);
  if (problems.length > 0) process.exitCode = 1;
}
