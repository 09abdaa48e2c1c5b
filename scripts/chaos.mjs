// npm run chaos: injects every fault on every queue back end, or replaces servers by others (docs/reliability.md#failover).

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from './build/bootstrap.mjs';
import { recordTests } from './prove/proofs.mjs';
import { readArguments, readNumber, rejectArguments, requireChoice, usage } from './shared/arguments.mjs';
import { runJest } from './test/run/run-jest.mjs';
import { buildRelease, findIncompatibility, lastTag } from './upgrade/older-release.mjs';

const TOPOLOGIES = ['sentinel', 'cluster', 'partition', 'postgres', 'shards', 'all'];
const USAGE = usage({
  call: 'npm run chaos [-- --seed <n> --seeds <n> --only <text> --older-release <tag or commit> --topology <name> --default-mb <n>]',
  purpose:
    'injects every fault on every queue back end, with a ledger of the deliveries; a proof (docs/proofs.md)',
  duration: '15 minutes for all faults, 20 for all topologies; each result is printed at once',
  prerequisites: 'redis-server for the queue on Redis; root and iproute2 on Linux for network faults',
  details: `--seed           repeats the times of a run
--seeds          continues with as many seeds; 1 when omitted
--only           the faults whose name contains it
--older-release  the release that runs next to this one; the last tag when omitted
--topology       servers replace others instead: ${TOPOLOGIES.join(', ')}
--default-mb     the size of the default partition that is converted under load; 1024 when omitted`,
});

const { values } = readArguments(USAGE, {
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1' },
    only: { type: 'string' },
    'older-release': { type: 'string' },
    topology: { type: 'string' },
    'default-mb': { type: 'string' },
  },
});
const firstSeed = readNumber('--seed', values.seed ?? `${Date.now() % 1_000_000}`, {
  min: 0,
  isInteger: true,
});
const seeds = readNumber('--seeds', values.seeds, { isInteger: true });
const defaultMb = readNumber('--default-mb', values['default-mb'] ?? '1024', { isInteger: true });
const isTopologyRun = values.topology !== undefined;
if (isTopologyRun) requireChoice('--topology', values.topology, TOPOLOGIES);
const release = isTopologyRun ? null : (values['older-release'] ?? lastTag());
const reason = release === null ? null : findIncompatibility(release);
if (reason !== null && values['older-release'] !== undefined) rejectArguments(reason);
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => stopping.abort());

function proofs() {
  if (!isTopologyRun) return ['chaos'];
  const names = values.topology === 'all' ? TOPOLOGIES.filter((name) => name !== 'all') : [values.topology];
  return names.map((name) => `chaos ${name}`);
}

/**
 * Returns the command that runs a program in a separate network, with separate names of network namespaces. No other process can
 * reach that network, and the kernel removes it with the last process of the run, however that ends. `reason` is set where the
 * machine does not permit it.
 */
function createNetwork() {
  const script = 'mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up && exec "$@"';
  const within = ['unshare', '--net', '--mount', '--', 'sh', '-c', script, 'sh'];
  const [program, ...args] = [...within, 'ip', 'netns', 'add', 'probe'];
  const { status, error, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status === 0) return { within, reason: null };
  return {
    within: [],
    reason: `no separate network is available (requires root on Linux and iproute2): ${error?.message ?? stderr.trim()}`,
  };
}

await bootstrap({ signal: stopping.signal });
const folder = await mkdtemp(join(tmpdir(), 'runhook-chaos-'));
try {
  const network = isTopologyRun ? createNetwork() : { within: [], reason: null };
  if (reason !== null) process.stderr.write(`no other release runs next to this one: ${reason}\n`);
  const compatibleRelease = reason === null ? release : null;
  const olderCheckout =
    compatibleRelease === null ? null : await buildRelease(compatibleRelease, folder, stopping.signal);
  const failed = [];
  const figures = [];
  for (let seed = firstSeed; seed < firstSeed + seeds && !stopping.signal.aborted; seed += 1) {
    const results = await runJest({
      args: isTopologyRun
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
        ...(isTopologyRun ? { CHAOS_TOPOLOGY: values.topology, CHAOS_NO_NETWORK: network.reason ?? '' } : {}),
        ...(values.only === undefined ? {} : { CHAOS_ONLY: values.only }),
        ...(olderCheckout === null ? {} : { CHAOS_OLDER_CHECKOUT: olderCheckout }),
      },
      folder,
      signal: stopping.signal,
      within: network.within,
    });
    figures.push(...results.figures);
    if (!results.isSuccess) failed.push(seed);
  }
  if (seeds > 1) {
    process.stderr.write(
      `seeds ${firstSeed} to ${firstSeed + seeds - 1}, failed: ${failed.join(', ') || 'none'}\n`,
    );
  }
  const isSuccess = failed.length === 0 && !stopping.signal.aborted;
  process.exitCode = isSuccess ? 0 : 1;
  // A run of selected faults proves nothing about the others.
  if (values.only === undefined)
    for (const proof of proofs()) recordTests(proof, { isSuccess, figures }, { isCounted: false });
} finally {
  await rm(folder, { recursive: true, force: true });
}
