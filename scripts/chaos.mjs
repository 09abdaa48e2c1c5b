// npm run chaos: every fault on every queue back end, or servers that take the place of others (docs/reliability.md#failover).

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readArguments, readNumber, refuseArguments, requireChoice } from './arguments.mjs';
import { bootstrap } from './bootstrap.mjs';
import { buildOlder, lastTag, whyNotBeside } from './older-release.mjs';
import { runJest } from './run-jest.mjs';

const TOPOLOGIES = ['sentinel', 'cluster', 'partition', 'postgres', 'shards', 'all'];
const USAGE = `npm run chaos [-- --seed <n> --seeds <n> --only <text> --older <tag or commit> --topology <name> --default-mb <n>]

--seed      brings the moments of a run back
--seeds     goes on with as many seeds; 1 when omitted
--only      the faults whose name holds it
--older     the release that works beside this one; the last tag when omitted
--topology  servers take the place of others instead: ${TOPOLOGIES.join(', ')}
--default-mb  the size of the default partition that is converted under load; 1024 when omitted`;

const { values } = readArguments(USAGE, {
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1' },
    only: { type: 'string' },
    older: { type: 'string' },
    topology: { type: 'string' },
    'default-mb': { type: 'string' },
  },
});
const first = readNumber('--seed', values.seed ?? `${Date.now() % 1_000_000}`, { min: 0, isWhole: true });
const seeds = readNumber('--seeds', values.seeds, { isWhole: true });
const defaultMb = readNumber('--default-mb', values['default-mb'] ?? '1024', { isWhole: true });
const isFailover = values.topology !== undefined;
if (isFailover) requireChoice('--topology', values.topology, TOPOLOGIES);
const release = isFailover ? null : (values.older ?? lastTag());
const reason = release === null ? null : whyNotBeside(release);
if (reason !== null && values.older !== undefined) refuseArguments(reason);
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
  const network = isFailover ? ownNetwork() : { within: [], reason: null };
  if (reason !== null) process.stderr.write(`no release works beside this one: ${reason}\n`);
  const beside = reason === null ? release : null;
  const older = beside === null ? null : await buildOlder(beside, folder, stopping.signal);
  const failed = [];
  for (let seed = first; seed < first + seeds && !stopping.signal.aborted; seed += 1) {
    const { isSuccess } = await runJest({
      args: isFailover
        ? ['--testMatch', '**/e2e/chaos/failover.story.ts', '--runInBand']
        : [
            '--testMatch',
            '**/e2e/chaos/chaos.long.test.ts',
            ...(values.only === undefined
              ? ['**/e2e/chaos/clocks.long.test.ts', '**/e2e/chaos/killed-pages.story.ts']
              : []),
            '--runInBand',
          ],
      environment: {
        CHAOS: 'long',
        CHAOS_SEED: String(seed),
        CHAOS_DEFAULT_MB: String(defaultMb),
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
  if (seeds > 1) {
    process.stderr.write(`seeds ${first} to ${first + seeds - 1}, failed: ${failed.join(', ') || 'none'}\n`);
  }
  process.exitCode = failed.length === 0 && !stopping.signal.aborted ? 0 : 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
