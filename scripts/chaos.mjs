// npm run chaos: every fault on every queue back end. --seed <number> brings the moments of a run back; --seeds <number>
// goes on with as many seeds; --only <text> takes the faults whose name holds it; --older <tag or commit> names the
// release that works beside this one, which is the last tag when omitted. --topology <sentinel | cluster | partition | postgres |
// shards | all> has servers take the place of others instead (docs/reliability.md#failover).

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bootstrap } from './bootstrap.mjs';
import { buildOlder, lastTag } from './older-release.mjs';
import { runJest } from './run-jest.mjs';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1' },
    only: { type: 'string' },
    older: { type: 'string' },
    topology: { type: 'string' },
  },
});
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

/**
 * A network of its own for a run, with the names of the networks in it: no other process can reach it, and all of it is gone
 * with the last process of the run, however that ends. Null with the reason where it cannot be had.
 */
function ownNetwork() {
  const script = 'mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up && exec "$@"';
  const within = ['unshare', '--net', '--mount', '--', 'sh', '-c', script, 'sh'];
  const [program, ...args] = [...within, 'ip', 'netns', 'add', 'probe'];
  const { status, error, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status === 0) return { within, reason: null };
  return {
    within: [],
    reason: `no network of its own (root on Linux, iproute2): ${error?.message ?? stderr.trim()}`,
  };
}

await bootstrap({ signal: stopping.signal });
const folder = await mkdtemp(join(tmpdir(), 'runhook-chaos-'));
try {
  const isFailover = values.topology !== undefined;
  const network = isFailover ? ownNetwork() : { within: [], reason: null };
  const release = isFailover ? null : (values.older ?? lastTag());
  const older = release === null ? null : await buildOlder(release, folder, stopping.signal);
  const first = Number(values.seed ?? Date.now() % 1_000_000);
  const failed = [];
  for (let seed = first; seed < first + Number(values.seeds) && !stopping.signal.aborted; seed += 1) {
    const { isSuccess } = await runJest({
      args: isFailover
        ? ['--testMatch', '**/e2e/chaos/failover.story.ts', '--runInBand']
        : ['e2e/chaos/chaos.test.ts', '--runInBand'],
      environment: {
        CHAOS: 'long',
        CHAOS_SEED: String(seed),
        ...(isFailover ? { CHAOS_TOPOLOGY: values.topology, CHAOS_NO_NETWORK: network.reason ?? '' } : {}),
        ...(values.only === undefined ? {} : { CHAOS_ONLY: values.only }),
        ...(older === null ? {} : { CHAOS_OLDER: older }),
      },
      folder,
      signal: stopping.signal,
      within: network.within,
    });
    if (!isSuccess) failed.push(seed);
  }
  if (values.seeds !== '1') {
    process.stderr.write(
      `seeds ${first} to ${first + Number(values.seeds) - 1}, failed: ${failed.join(', ') || 'none'}\n`,
    );
  }
  process.exitCode = failed.length === 0 && !stopping.signal.aborted ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
