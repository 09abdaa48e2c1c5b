// npm run prove -- chart: compares the manifests that helm renders from the chart with those of the overlays. Uses the helm on the
// path, or builds one from source with Go and stores it below node_modules, because neither npm nor Debian has it.
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
  duration: 'a minute, and a few minutes to build helm once',
  prerequisites: 'helm, or go to build it once',
});

readArguments(USAGE, {});

const HELM = 'helm.sh/helm/v3/cmd/helm@v3.22.0';
const folder = join(root, 'node_modules', '.cache', 'runhook');

const exists = (file) => spawnSync(file, ['version']).status === 0;
if (!exists('helm') && !existsSync(join(folder, 'helm'))) {
  if (spawnSync('go', ['version']).error) {
    process.stderr.write('neither helm nor go is on the path; install one of them\n');
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
