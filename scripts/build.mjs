// npm run build: installs, generates and builds everything that is missing. Its parts write files that are published or committed.
import { runPart, usage } from './shared/arguments.mjs';

const USAGE = usage({
  call: 'npm run build [-- <part>] [--help]',
  purpose: 'installs packages, generates sources, compiles, bundles the services and builds the console',
  duration: 'a minute at first, later depends on the change',
  prerequisites: 'Node and npm',
  details: `packages  packs the packages that users install
golden    writes packages/contract/golden/`,
});

const [part] = process.argv.slice(2);
if (part === undefined) {
  const { bootstrap } = await import('./build/bootstrap.mjs');
  await bootstrap();
} else {
  await runPart(USAGE, {
    packages: () => import('./build/packages.mjs'),
    golden: () => import('./build/golden.mjs'),
  });
}
