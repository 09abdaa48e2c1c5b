// npm run bench -- simulate: simulates Runhook at given rates on a virtual clock.
import { usage } from '../shared/arguments.mjs';
import { runMeasurement } from './run-measurement.mjs';

const USAGE = usage({
  call: 'npm run bench -- simulate [<mode> <options>]',
  purpose: 'simulates Runhook at a given rate on a virtual clock (docs/scaling.md#the-simulation)',
  duration: 'seconds; --docs and --plans minutes, --against-bench 6 minutes on a machine without other load',
  prerequisites: 'none',
  details: `simulation, the default mode
--rate <n>            deliveries per second; 1000
--arrivals <name>     poisson, even, or burst (ten times the rate for ten seconds of each minute); poisson
--via <name>          rest, or queue (published directly onto it); rest
--deliveries <n>      deliveries per event; 1
--dispatchers, --management, --shards, --redis-nodes, --database-cores, --concurrency <n>
--databases <n>       number of cells, or of Citus workers; one equal part is simulated
--endpoints <file>    JSON: p50Ms, p99Ms, failureShare, count; or each as --p50-ms, --p99-ms, --failure-share
--seconds <n>         of virtual time; 10
--seed <n>            repeats the random choices of a run; 1
--knee                also finds the rate up to which p99 remains low

other modes
--scaling             results of the trials of the scaler, with pictures in --out <folder>; --max-dispatchers <n>
                      dispatchers instead of the maximum in the manifests
--plans               the plans of docs/scaling.md with their cost: --rates 100,1000 --days 30,7 --prices <file>
                      or single prices: --vcpu, --disk, --archive, --internet, --zones <dollars>
--docs                writes docs/scaling.md and its pictures from bench/simulate/measured.json
--against-bench       runs scenarios of npm run bench here, fits the times to some and compares the others; a proof (docs/proofs.md); --runs, --bench-seconds
--against-page        compares with the figures of docs/performance.md instead
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
