// npm run prove-dashboard: both services under load, a Prometheus that scrapes them, and what every panel's query returns.
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from './bootstrap.mjs';
import { runJest } from './run-jest.mjs';
import { startTestServers } from './test-servers.mjs';

if (spawnSync('prometheus', ['--version'], { stdio: 'ignore' }).error) {
  process.stderr.write('prometheus is not on the path. On Debian: apt-get install prometheus\n');
  process.exit(1);
}
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

await bootstrap({ signal: stopping.signal });
const folder = await mkdtemp(join(tmpdir(), 'runhook-dashboard-'));
// Other accounts may pass: PostgreSQL does not run as root.
await chmod(folder, 0o711);
let servers = null;
try {
  servers = await startTestServers({ folder, runId: `${process.pid}x${Date.now().toString(36)}` });
  const { isSuccess } = await runJest({
    args: ['e2e/observability/monitoring.test.ts'],
    environment: { ...servers.environment, PROVE_DASHBOARD: '1' },
    folder,
    signal: stopping.signal,
  });
  process.exitCode = isSuccess && !stopping.signal.aborted ? 0 : 1;
} finally {
  await servers?.close();
  await rm(folder, { recursive: true, force: true });
}
