// npm run prove-dashboard: both services under load, a Prometheus that scrapes them, and what every panel's query returns.
import { spawnSync } from 'node:child_process';
import { recordTests } from './prove/proofs.mjs';
import { runWithTestServers } from './test-servers.mjs';

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
