import { readFileSync } from 'node:fs';
import { DISK_USE_MAX, PLANNED_USE, type Plan } from './plans.ts';
import type { ServiceTimes } from './times.ts';

/** US dollars: rounded figures in the range of large clouds' on-demand prices; not a quote. */
export type Prices = Record<'vcpu' | 'disk' | 'archive' | 'internet' | 'zones', number>;

const PRICES = new URL('../../simulate/prices.json', import.meta.url);

export function readPrices(file: URL | string = PRICES): Prices {
  const read = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { dollars: number }>;
  return Object.fromEntries(Object.entries(read).map(([name, { dollars }]) => [name, dollars])) as Prices;
}

/** Costs per month, in US dollars. */
export interface Cost {
  /** Redis and PostgreSQL include a standby each. */
  vcpus: { management: number; dispatchers: number; redis: number; postgres: number };
  compute: number;
  logGb: number;
  log: number;
  sentGb: number;
  traffic: number;
  all: number;
  perMillion: number;
}

const WAL_DAYS = 7;
const SECONDS_PER_MONTH = 2_628_000;
const DAYS_PER_MONTH = 30.4;
/** The least cores that are paid for: those that k8s/ requests for a management pod, and half a core for a Redis. */
const MANAGEMENT_MIN = 0.25;
const REDIS_MIN = 0.5;

export function estimateCost(plan: Plan, prices: Prices, { machine, postgres }: ServiceTimes): Cost {
  const { ratePerSecond, days, observation, databases } = plan;
  const halves = (cores: number) => Math.ceil(2 * cores) / 2;
  const busy = (pods: number, use: number) => halves((pods * use) / PLANNED_USE);
  const redisEach = Math.max(REDIS_MIN, busy(1, observation.use.Redis));
  const vcpus = {
    management: Math.max(plan.management * MANAGEMENT_MIN, busy(plan.management, observation.use.management)),
    dispatchers: plan.dispatchers,
    redis: 2 * plan.redisNodes * redisEach,
    postgres: 2 * databases * plan.databaseCores,
  };
  const compute = Object.values(vcpus).reduce((sum, count) => sum + count, 0) * prices.vcpu;
  const gigabytesPerDay = (bytes: number) => (ratePerSecond * 86_400 * bytes) / 1e9;
  const logGb = gigabytesPerDay(postgres.diskBytes) * days;
  const walGb = gigabytesPerDay(postgres.walBytes);
  // Includes the standby's disk, with a quarter free; the write-ahead log of the last week is archived.
  const log = (logGb / DISK_USE_MAX) * 2 * prices.disk + walGb * WAL_DAYS * prices.archive;
  const sentGb = (ratePerSecond * SECONDS_PER_MONTH * (machine.requestBytes + machine.overheadBytes)) / 1e9;
  const traffic = sentGb * prices.internet + walGb * DAYS_PER_MONTH * prices.zones;
  const all = compute + log + traffic;
  const perMillion = all / ((ratePerSecond * SECONDS_PER_MONTH) / 1e6);
  return { vcpus, compute, logGb, log, sentGb, traffic, all, perMillion };
}
