// npm run prove -- chart: compares what the chart makes with what the overlays make, by helm itself. A helm on the path is taken;
// otherwise it is built once from its source, with Go, and kept below node_modules: npm and Debian have none.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { readArguments, usage } from '../shared/arguments.mjs';
import { run, step } from '../shared/command.mjs';
import { root } from '../shared/workspace.mjs';
import { runWithTestServers } from '../test/run/servers.mjs';
import { recordTests } from './proofs.mjs';

const USAGE = usage({
  call: 'npm run prove -- chart',
  purpose: 'compares what helm renders from the chart with the overlays; a proof (docs/proofs.md)',
  duration: 'a minute; a few more to build helm',
  prerequisites: 'helm, or go to build it once',
});

readArguments(USAGE, {});

const HELM = 'helm.sh/helm/v3/cmd/helm@v3.22.0';
const folder = join(root, 'node_modules', '.cache', 'runhook');

const isThere = (file) => spawnSync(file, ['version']).status === 0;
if (!isThere('helm') && !existsSync(join(folder, 'helm'))) {
  if (spawnSync('go', ['version']).error) {
    process.stderr.write('neither helm nor go is on the path: install one of them\n');
    process.exit(1);
  }
  mkdirSync(folder, { recursive: true });
  await step(`building ${HELM}, which takes some minutes`, () =>
    run('go', ['install', HELM], { cwd: folder, env: { ...process.env, GOBIN: folder }, name: 'go install' }),
  );
}
recordTests(
  'chart',
  await runWithTestServers({ name: 'chart', args: ['e2e/deploy/chart'], environment: {} }),
);
