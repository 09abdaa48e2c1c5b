import { markdownTable } from '../report/document.ts';
import { figureText } from '../report/table.ts';
import type { Comparison } from './comparison.ts';
import { estimateCost, type Prices } from './cost.ts';
import { type Plan, Planner } from './plans.ts';
import { type Measured, type ServiceTimes, timesOf } from './times.ts';

/** Rates that plans are computed for, each with the days of its log. */
export type PlanTarget = readonly { ratePerSecond: number; days: number }[];

export const PLAN_TARGETS: PlanTarget = [100, 1_000, 10_000, 100_000, 1_000_000].map((ratePerSecond) => ({
  ratePerSecond,
  days: 30,
}));

/** A further row of the costs with a short log, which is most of the cost at this rate. */
const SHORT_RETENTION_TARGETS: PlanTarget = [{ ratePerSecond: 10_000, days: 7 }];

const formatInteger = (value: number) => Math.round(value).toLocaleString('en');
const formatDollars = (amount: number) => `$${formatInteger(amount)}`;
const formatSize = (gigabytes: number) => {
  if (gigabytes >= 1e6) return `${(gigabytes / 1e6).toFixed(1)} PB`;
  return gigabytes >= 1_000 ? `${(gigabytes / 1_000).toFixed(1)} TB` : `${Math.round(gigabytes)} GB`;
};
/** Rounds to two significant digits. */
const formatRounded = (value: number) => formatInteger(Number(value.toPrecision(2)));

export function plansTable(plans: readonly Plan[]): string {
  const head = [
    ...['Deliveries/s', 'Installations (a)', 'Management (s)', 'Dispatchers (s)', 'Shards each (d)'],
    ...['Redis masters (s)', 'Databases, vCPU each (s)', 'WAL (m)', 'Connections to one (d)'],
    ...['p50, p99 (s)', 'Knee (s)', 'First bottleneck (s)', 'Next limit (a)'],
  ];
  return markdownTable(
    head,
    plans.map((plan) => [
      formatInteger(plan.ratePerSecond),
      ...[plan.installations, plan.management, plan.dispatchers, plan.shards, plan.redisNodes].map(
        formatInteger,
      ),
      `${formatInteger(plan.databases)} of ${plan.databaseCores}`,
      `${figureText(plan.walMbPerSecond)} MB/s`,
      formatInteger(plan.connections),
      `${figureText(plan.observation.p50Ms)}, ${figureText(plan.observation.p99Ms)} ms`,
      `${formatRounded(plan.kneePerSecond)}/s`,
      plan.fullFirst,
      `${plan.next.part}, at ${formatRounded(plan.next.atRatePerSecond)}/s`,
    ]),
  );
}

export function costTable(plans: readonly Plan[], prices: Prices, times: ServiceTimes): string {
  return markdownTable(
    ['Deliveries/s, log', 'Compute', 'Log', 'Traffic', 'Per month', 'Per million'],
    plans.map((plan) => {
      const cost = estimateCost(plan, prices, times);
      return [
        `${formatInteger(plan.ratePerSecond)}, ${plan.days} days`,
        formatDollars(cost.compute),
        `${formatSize(cost.logGb)}: ${formatDollars(cost.log)}`,
        `${formatSize(cost.sentGb)}: ${formatDollars(cost.traffic)}`,
        formatDollars(cost.all),
        `$${cost.perMillion.toFixed(2)}`,
      ];
    }),
  );
}

/** Returns the table of the figures that must be within 20 % of the benchmark's. */
export function comparisonTable(compared: readonly Comparison[]): string {
  const checked = compared.filter(({ isChecked }) => isChecked);
  return markdownTable(
    ['', 'figure', 'bench', 'simulated', 'ratio'],
    checked.map((one) => [
      one.case,
      one.figure,
      figureText(one.measured),
      figureText(one.simulated),
      one.ratio.toFixed(2),
    ]),
  );
}

/**
 * Returns the generated parts of docs/scaling.md that depend only on `measured.json` and the prices, by the name of
 * their mark.
 */
export function scalingParts(measured: Measured, prices: Prices): Record<string, string> {
  const times = timesOf(measured);
  const planner = new Planner(times);
  const plansOf = (target: PlanTarget) =>
    target.map(({ ratePerSecond, days }) => planner.plan(ratePerSecond, days));
  const plans = plansOf(PLAN_TARGETS);
  return {
    plans: plansTable(plans),
    cost: costTable([...plans, ...plansOf(SHORT_RETENTION_TARGETS)], prices, times),
  };
}

/** @throws Error if the page lacks one of the marks */
export function fillMarkers(page: string, parts: Record<string, string>): string {
  let filled = page;
  for (const [name, part] of Object.entries(parts)) {
    const mark = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(<!-- end -->)`);
    if (!mark.test(filled)) throw new Error(`The page has no mark "${name}".`);
    filled = filled.replace(mark, (_, before, after) => `${before}\n${part}\n\n${after}`);
  }
  return filled;
}
