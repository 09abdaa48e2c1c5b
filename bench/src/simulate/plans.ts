import { findKnee, type Knee, observeAt } from './knee.ts';
import type { Observation, Part } from './observe.ts';
import { DEFAULT_SETUP, type Setup } from './service.ts';
import type { ServiceTimes } from './times.ts';

/** The plan for a rate. Counts are totals, except those of a database. */
export interface Plan {
  ratePerSecond: number;
  days: number;
  installations: number;
  management: number;
  dispatchers: number;
  /** Per installation. */
  shards: number;
  redisNodes: number;
  databases: number;
  /** Per database. */
  databaseCores: number;
  connections: number;
  diskTb: number;
  walMbPerSecond: number;
  /** Simulation of one part: a database with the processes that use it. */
  observation: Observation;
  kneePerSecond: number;
  fullFirst: Part;
  next: { part: string; atRatePerSecond: number };
}

/** Planned utilization: half of the capacity is a reserve for bursts, retries, upgrades and the loss of a zone. */
export const PLANNED_USE = 0.5;
/** A disk is at most three quarters full. */
export const DISK_USE_MAX = 0.75;
const PODS_MIN = 2;
const CORES = [1, 2, 4, 8, 16, 32, 64];
const ROUNDS_MAX = 6;
/**
 * Utilization at which a plan is complete: above {@link PLANNED_USE}, because more pods have smaller batches, so that
 * each round asks for slightly more pods than the last.
 */
const USE_MAX = 0.6;
const MANAGEMENT_CONNECTIONS = 21;

interface Slice {
  setup: Setup;
  observation: Observation;
  knee: Knee;
}

/** Computes plans; plans that consist of equal parts share the simulation of one part. */
export class Planner {
  readonly #times: ServiceTimes;
  readonly #parts = new Map<number, Slice>();

  constructor(times: ServiceTimes) {
    this.#times = times;
  }

  plan(ratePerSecond: number, days: number): Plan {
    const { cluster, postgres } = this.#times;
    const diskTb = (ratePerSecond * 86_400 * days * postgres.diskBytes) / 1e12;
    const databases = Math.max(
      Math.ceil(ratePerSecond / cluster.ratePerDatabaseMax),
      Math.ceil(diskTb / DISK_USE_MAX / cluster.diskTbMax),
    );
    const partRate = ratePerSecond / databases;
    const { setup, observation, knee } = this.#part(partRate);
    const installations = Math.ceil(ratePerSecond / cluster.ratePerInstallationMax);
    const redisNodes = setup.redisNodes * databases;
    const connections = setup.dispatchers * cluster.connections + setup.management * MANAGEMENT_CONNECTIONS;
    const plan = {
      ...{ ratePerSecond, days, installations, redisNodes, databases, connections, diskTb, observation },
      management: setup.management * databases,
      dispatchers: setup.dispatchers * databases,
      shards: shardsFor(redisNodes / installations, cluster),
      databaseCores: setup.databaseCores,
      walMbPerSecond: (ratePerSecond * postgres.walBytes) / 1e6,
      kneePerSecond: knee.ratePerSecond * databases,
      fullFirst: knee.fullFirst,
    };
    return { ...plan, next: this.#next(plan, knee.redisPerSecond * databases) };
  }

  /** Returns the simulation of one database with the processes that use it, sized so that each is half utilized. */
  #part(ratePerSecond: number): Slice {
    const cached = this.#parts.get(ratePerSecond);
    if (cached !== undefined) return cached;
    const load = { via: 'rest', arrivals: 'poisson' } as const;
    let setup: Setup = { ...DEFAULT_SETUP, databaseCores: 1 };
    let observation = observeAt({ times: this.#times, setup, load }, ratePerSecond);
    for (let round = 0; round < ROUNDS_MAX && needsMore(observation); round += 1) {
      const { use } = observation;
      const enough = (count: number, share: number) => Math.ceil((count * share) / PLANNED_USE);
      const cores = enough(setup.databaseCores, use.PostgreSQL);
      setup = {
        ...setup,
        management: Math.max(PODS_MIN, enough(setup.management, use.management)),
        dispatchers: Math.max(
          PODS_MIN,
          enough(setup.dispatchers, Math.max(use.dispatcher, use['slots for events'])),
        ),
        redisNodes: Math.max(setup.redisNodes, enough(setup.redisNodes, use.Redis - (USE_MAX - PLANNED_USE))),
        databaseCores: CORES.find((count) => count >= cores) ?? cores,
      };
      setup = { ...setup, shards: setup.redisNodes };
      observation = observeAt({ times: this.#times, setup, load }, ratePerSecond);
    }
    const part = { setup, observation, knee: findKnee({ times: this.#times, setup, load }) };
    this.#parts.set(ratePerSecond, part);
    return part;
  }

  /** Returns the next limit above the rate that more pods would not remove. */
  #next(plan: Omit<Plan, 'next'>, redisPerSecond: number): Plan['next'] {
    const { cluster } = this.#times;
    const { ratePerSecond: rate, databases, installations, connections, diskTb } = plan;
    const isPartitioned = databases > 1;
    const isMinimum = plan.dispatchers === PODS_MIN && plan.management === PODS_MIN;
    const limits: [string, number][] = [
      ['the disk of a database', (rate * cluster.diskTbMax * DISK_USE_MAX * databases) / diskTb],
      // The minimum number of pods does not show how many a higher rate needs.
      ['connections: a pooler', isMinimum ? Infinity : (rate * cluster.connectionsMax) / connections],
      ['a Redis core: shards', redisPerSecond],
      ['one database', isPartitioned ? Infinity : cluster.ratePerDatabaseMax],
      ['one installation: cells', installations > 1 ? Infinity : cluster.ratePerInstallationMax],
    ];
    const [part, atRatePerSecond] = limits
      .filter(([, at]) => at >= rate)
      .reduce((nearest, limit) => (limit[1] < nearest[1] ? limit : nearest));
    return { part, atRatePerSecond };
  }
}

function needsMore({ use }: Observation): boolean {
  const parts: Part[] = ['management', 'dispatcher', 'slots for events', 'Redis', 'PostgreSQL'];
  return parts.some((part) => use[part] > USE_MAX);
}

function shardsFor(nodes: number, { shardsMax, shardsPerNode }: ServiceTimes['cluster']): number {
  if (nodes <= 1) return 1;
  return Math.min(shardsMax, 2 ** Math.ceil(Math.log2(nodes * shardsPerNode)));
}
