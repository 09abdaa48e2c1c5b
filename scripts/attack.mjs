// npm run attack: everything of e2e/attack for minutes. --minutes <number> in all, 10 when omitted; --seed <number> brings
// the requests of a run back; --only <text> takes the attacks whose name holds it.
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bootstrap } from './bootstrap.mjs';
import { runJest } from './run-jest.mjs';
import { startTestServers } from './test-servers.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    only: { type: 'string' },
  },
});
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

await bootstrap({ signal: stopping.signal });
// Other accounts may pass: PostgreSQL does not run as root.
const folder = await mkdtemp(join(tmpdir(), 'runhook-attack-'));
await chmod(folder, 0o711);
let servers = null;
try {
  servers = await startTestServers({ folder, runId: `${process.pid}x${Date.now().toString(36)}` });
  const { isSuccess } = await runJest({
    args: ['e2e/attack/attack.test.ts', '--runInBand'],
    environment: {
      ...servers.environment,
      ATTACK_MINUTES: values.minutes,
      ...(values.seed === undefined ? {} : { ATTACK_SEED: values.seed }),
      ...(values.only === undefined ? {} : { ATTACK_ONLY: values.only }),
    },
    folder,
    signal: stopping.signal,
  });
  process.exitCode = isSuccess && !stopping.signal.aborted ? 0 : 1;
} finally {
  await servers?.close();
  await rm(folder, { recursive: true, force: true });
}
