// npm run chaos: every fault on every queue back end. --seed <number> brings the moments of a run back; --only <text>
// takes the faults whose name holds it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bootstrap } from './bootstrap.mjs';
import { runJest } from './run-jest.mjs';

const { values } = parseArgs({ options: { seed: { type: 'string' }, only: { type: 'string' } } });
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

await bootstrap({ signal: stopping.signal });
const folder = await mkdtemp(join(tmpdir(), 'runhook-chaos-'));
try {
  const { isSuccess } = await runJest({
    args: ['e2e/chaos/chaos.test.ts', '--runInBand'],
    environment: {
      CHAOS: 'long',
      ...(values.seed === undefined ? {} : { CHAOS_SEED: values.seed }),
      ...(values.only === undefined ? {} : { CHAOS_ONLY: values.only }),
    },
    folder,
    signal: stopping.signal,
  });
  process.exitCode = isSuccess && !stopping.signal.aborted ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
