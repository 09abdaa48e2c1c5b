// npm run bench -- simulate: simulates Runhook at given rates on a virtual clock.
import { usage } from '../shared/arguments.mjs';
import { runMeasurement } from './run-measurement.mjs';

const USAGE = usage({
  call: 'npm run bench -- simulate [<what> <options>]',
  purpose: 'simulates Runhook at a given rate on a virtual clock (docs/scaling.md#the-simulation)',
  duration: 'seconds; --docs and --plans minutes, --against-bench 10 minutes on a machine without other work',
  prerequisites: 'none',
  details: `what is run, without another word
--rate <n>            deliveries a second; 1000
--arrivals <name>     poisson, even, or burst (ten times as many for ten seconds of each minute); poisson
--how <name>          rest, or queue: published straight onto it; rest
--deliveries <n>      deliveries of each event; 1
--dispatchers, --management, --shards, --redis-nodes, --database-cores, --concurrency <n>
--databases <n>       cells, or workers of Citus: one equal part of everything is simulated
--endpoints <file>    JSON: p50Ms, p99Ms, failureShare, count; or each as --p50-ms, --p99-ms, --failure-share
--seconds, --seed <n> of virtual time, 10; the same seed does the same, 1
--knee                also the rate up to which p99 stays

instead
--scaling             the trials of the scaler: what came of each, and their pictures into --out <folder>; --most <n>
                      dispatchers in place of what the manifests say
--plans               the plans of docs/scaling.md, and what they cost: --rates 100,1000 --days 30,7 --prices <file>
                      or one price: --vcpu, --disk, --archive, --internet, --zones <dollars>
--docs                writes docs/scaling.md and its pictures from bench/simulate/measured.json
--against-bench       runs scenarios of npm run bench here, fits the times to some and compares the others; a proof (docs/proofs.md); --runs, --bench-seconds
--against-page        the same with what docs/performance.md says
--fit                 rewrites measured.json, fitted to docs/performance.md`,
});

await runMeasurement(USAGE, async (args, signal) => {
  // Bootstrap builds this module, so the import must follow it.
  const { simulate } = await import('../../bench/dist/simulate/main.js');
  const figures = [];
  const code = await simulate(args, signal, (figure) => figures.push(figure));
  if (code === 0 && args.includes('--against-bench')) {
    const { recordProof } = await import('../prove/proofs.mjs');
    recordProof('simulation', figures);
  }
  return code;
});
