import { type Bench, type Figures, type Measured, measureCases, type ScenarioResult } from '../bench.ts';
import { type Balance, sumBalances } from '../measure/ledger.ts';
import type { Program } from '../programs/program.ts';
import { withReporter, withRunnersWorld } from '../world/runners.ts';
import { withDebianPostgres } from './debian.ts';
import { createClosedLoop, createReporterSettings, measureAccepted, measureDelivered } from './reported.ts';
import { drainBacklog } from './rest-backlog.ts';

const EVENTS_PER_SECOND = 100;

/**
 * The figures that are compared between the oldest supported Node and the one that runs the benchmark, by row name. For
 * rates, higher is better; for the others, lower is better.
 */
const COMPARED = [
  { name: 'REST backlog of one webhook, per second', figure: 'backlogPerSecond', isRate: true },
  { name: 'accepted over REST, per second', figure: 'acceptedPerSecond', isRate: true },
  { name: 'REST to the endpoint, per second', figure: 'deliveredPerSecond', isRate: true },
  { name: 'p99 at 100/s, ms', figure: 'p99Ms', isRate: false },
  { name: 'CPU per event at 100/s, µs', figure: 'cpuMicros', isRate: false },
] as const;

/**
 * Measures the services on the oldest supported Node and on the Node that runs the benchmark, in turn. Each run has new
 * services.
 */
export async function node(bench: Bench): Promise<ScenarioResult> {
  const oldest = await bench.alternatives.fetchOldestNode();
  return await withReporter(async (reporter) => {
    const names = COMPARED.map(({ name }) => name);
    const rows = await measureCases(bench, names, async () => {
      const before = await measureOnNode(bench, reporter, oldest);
      const now = await measureOnNode(bench, reporter, process.execPath);
      const balance = sumBalances([before.balance, now.balance]);
      return COMPARED.map(({ figure, isRate }): Measured => {
        const [oldestNode, thisNode] = [before.figures[figure] as number, now.figures[figure] as number];
        const speed = isRate ? thisNode / oldestNode : oldestNode / thisNode;
        return { figures: { oldestNode, thisNode, speed }, balance };
      });
    });
    return { name: 'node', rows };
  });
}

async function measureOnNode(bench: Bench, reporter: Program, program: string): Promise<Measured> {
  const options = { ...withDebianPostgres(bench, { accounts: 1 }), node: program };
  return await withRunnersWorld(bench, reporter, 'redis', options, async (rest) => {
    const figures: Figures = {};
    const balances: Balance[] = [];
    const add = ({ figures: measured, balance }: Measured, names: Record<string, string>) => {
      balances.push(balance);
      for (const [name, from] of Object.entries(names)) figures[name] = measured[from] as number;
    };
    add(await drainBacklog(bench, rest), { backlogPerSecond: 'ratePerSecond' });
    const fastest = await measureDelivered(rest, createClosedLoop(rest, bench.runMs), 'run');
    add(fastest, { deliveredPerSecond: 'ratePerSecond' });
    const loop = { ...createReporterSettings(rest, bench.runMs), ratePerSecond: EVENTS_PER_SECOND };
    add(await measureDelivered(rest, loop, 'openLoop'), { p99Ms: 'p99Ms', cpuMicros: 'cpuMicros' });
    await rest.world.setDispatchers(0);
    add(await measureAccepted(bench, rest), { acceptedPerSecond: 'ratePerSecond' });
    return { figures, balance: sumBalances(balances) };
  });
}
