// npm run prove-chart: compares what the chart makes with what the overlays make, by helm itself. A helm on the path is taken;
// otherwise it is built once from its source, with Go, and kept below node_modules: npm and Debian have none.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { run, step } from './command.mjs';
import { recordTests } from './prove/proofs.mjs';
import { runWithTestServers } from './test-servers.mjs';
import { root } from './workspace.mjs';

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
