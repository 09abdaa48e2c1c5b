// npm run prove -- dashboard: runs both services under load with a Prometheus that scrapes them, and prints the result of each
// panel's query.
import { spawnSync } from 'node:child_process';
import { readArguments, usage } from '../shared/arguments.mjs';
import { runWithTestServers } from '../test/run/servers.mjs';
import { recordTests } from './proofs.mjs';

const USAGE = usage({
  call: 'npm run prove -- dashboard',
  purpose: 'runs every query of the dashboard under load; a proof (docs/proofs.md)',
  duration: '2 minutes',
  prerequisites: 'prometheus (apt-get install prometheus)',
});

readArguments(USAGE, {});

if (spawnSync('prometheus', ['--version'], { stdio: 'ignore' }).error) {
  process.stderr.write('prometheus is not on the path. On Debian: apt-get install prometheus\n');
  process.exit(1);
}
const results = await runWithTestServers({
  name: 'dashboard',
  args: ['e2e/observability/monitoring'],
  environment: { PROVE_DASHBOARD: '1' },
});
recordTests('dashboard', results);
