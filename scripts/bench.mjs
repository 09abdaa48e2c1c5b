// npm run bench: measures the real services on this machine, or simulates them.
import { fetchOldestNode, imageNodeVersion, runOnBenchNode } from './bench/bench-node.mjs';
import { runMeasurement } from './bench/run-measurement.mjs';
import { runPart, usage } from './shared/arguments.mjs';
import { findSystemPostgres } from './test/run/system-postgres.mjs';

const USAGE = usage({
  call: 'npm run bench [-- <scenario>… --quick --runs <n> --seconds <n> --stored <n> --queue <name> --node <major> --write-docs]',
  purpose:
    'measures the figures of docs/performance.md on this machine; simulate calculates them for other machines',
  duration:
    '100 minutes for all scenarios but soak, 21 for soak, 5 with --quick; Ctrl-C prints the results so far',
  prerequisites:
    "redis-server, Debian's postgresql (15), npm for the images' Node; a machine without other load",
  details: `scenarios: rest rest-backlog events-per-call first-minute half-fails jit node max latency far fan-out neighbours floods deferred backlog ingest list postgres-queue change shards profile soak;
all scenarios but soak when omitted
simulate      simulates instead of measuring: npm run bench -- simulate --help
--quick       runs all scenarios with little load in about five minutes, as a test; the figures are not valid
--runs        measurements per case; 3 when omitted
--seconds     length of one measurement; 8 when omitted, at least a minute for \`deferred\`
--stored      deliveries that \`list\` stores, 10,000,000 when omitted, or \`deferred\`, 1,000,000; a minute for each million
--queue       queue of \`floods\`, \`deferred\` and \`soak\`, redis or postgres; redis when omitted
--node        Node of the benchmark and the services (20, 22, 24, 26); that of the images when omitted, ${imageNodeVersion}
--write-docs  writes docs/performance.md from this run`,
});

if (process.argv[2] === 'simulate') await runPart(USAGE, { simulate: () => import('./bench/simulate.mjs') });
else await runOnBenchNode(measure);

async function measure() {
  await runMeasurement(USAGE, async (args, signal) => {
    // Bootstrap builds this module, so the import must follow it.
    const { bench, parseOptions } = await import('../bench/dist/main.js');
    return await bench(parseOptions(args), signal, {
      fetchOldestNode: () => fetchOldestNode(signal),
      debianPostgres: findSystemPostgres({ major: '15' }),
    });
  });
}
