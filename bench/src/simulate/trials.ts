import { Simulation } from './engine.ts';
import { Lanes } from './lanes.ts';
import { startLoad } from './observe.ts';
import { type Metrics, Scaler, type ScalerSettings } from './scaler.ts';
import { DEFAULT_SETUP, Service, type Setup } from './service.ts';
import type { ServiceTimes } from './times.ts';

/** A disturbance of the service, from one minute to another, while it is scaled. */
export interface Trial {
  name: 'burst' | 'outage' | 'slow-postgres' | 'waves';
  title: string;
  /** Label of the disturbance in the picture. */
  cause: string;
  fromMinute: number;
  toMinute: number;
  minutes: number;
  ratePerSecond: number;
  /** Factor of the rate during a burst, whose duration and repetition are optional. */
  times: number;
  burstMinutes?: number;
  everyMinutes?: number;
  databaseCores: number;
  /**
   * Number of events that each simulated event represents: trials have hours of thousands per second. More than a tenth
   * of the events that a dispatcher has in flight would blur the effects of slots and batches.
   */
  sample: number;
  begin?: (service: Service) => void;
  end?: (service: Service) => void;
}

export const TRIALS: readonly Trial[] = [
  {
    name: 'burst',
    title: 'A burst of a hundred times for a minute',
    cause: '300/s become 30,000/s',
    ...{ fromMinute: 5, toMinute: 6, minutes: 30 },
    ...{ ratePerSecond: 300, times: 100, databaseCores: 16, sample: 10 },
  },
  {
    name: 'outage',
    title: 'Half of the endpoints fail for half an hour',
    cause: 'a quarter hangs, a quarter refuses connections',
    ...{ fromMinute: 5, toMinute: 35, minutes: 75 },
    ...{ ratePerSecond: 1_000, times: 1, databaseCores: 4, sample: 10 },
    begin({ lanes }) {
      lanes.all.forEach((lane, index) => {
        if (index % 4 === 0) lane.health = 'hangs';
        else if (index % 4 === 1) lane.health = 'rejects';
      });
    },
    end({ lanes }) {
      for (const lane of lanes.all) lane.health = 'responds';
    },
  },
  {
    name: 'slow-postgres',
    title: 'PostgreSQL takes twelve times as long for twenty minutes',
    cause: 'every statement and flush takes twelve times as long',
    ...{ fromMinute: 5, toMinute: 25, minutes: 60 },
    ...{ ratePerSecond: 2_000, times: 1, databaseCores: 1, sample: 10 },
    begin(service) {
      service.databaseSlowness = 12;
    },
    end(service) {
      service.databaseSlowness = 1;
    },
  },
];

/**
 * A trial that would make the pods oscillate without the stabilization window: one cause whose work arrives in waves.
 */
export const WAVES: Trial = {
  name: 'waves',
  title: 'A burst every four minutes',
  cause: 'schedules that begin at the same minute',
  ...{ fromMinute: 5, toMinute: 25, minutes: 50, burstMinutes: 0.5, everyMinutes: 4 },
  ...{ ratePerSecond: 300, times: 80, databaseCores: 16, sample: 10 },
};

export interface TrialSnapshot {
  minute: number;
  pods: number;
  oldestSeconds: number;
  jobs: number;
  /** Deliveries that wait for their lane. */
  deferred: number;
  cpuPercent: number;
}

const MINUTE_MS = 60_000;
/**
 * Intervals of the dispatchers' measurement of the backlog and of the scaler's decision, and the window of
 * metrics-server's CPU.
 */
const MEASURE_INTERVAL_MS = 5_000;
const DECISION_INTERVAL_MS = 15_000;
const CPU_WINDOW_MS = 30_000;

export interface TrialOptions {
  times: ServiceTimes;
  trial: Trial;
  settings: ScalerSettings;
  /** Scrape interval of Prometheus; the scaler's data are that old. */
  scrapeIntervalMs: number;
  seed?: number;
}

/** Returns the number of dispatchers and the age of the oldest event, every 15 seconds. */
export function runTrial({
  times,
  trial,
  settings,
  scrapeIntervalMs,
  seed = 1,
}: TrialOptions): TrialSnapshot[] {
  const simulation = new Simulation(seed);
  const setup: Setup = { ...DEFAULT_SETUP, dispatchers: settings.min, databaseCores: trial.databaseCores };
  const lanes: Lanes = new Lanes(setup.endpoints, () => service);
  const service: Service = new Service(simulation, times, setup, lanes);
  const { ratePerSecond, fromMinute, toMinute } = trial;
  const load = startLoad(
    service,
    { kind: 'open', via: 'queue', ratePerSecond, arrivals: 'poisson' },
    trial.sample,
  );
  simulation.after(fromMinute * MINUTE_MS, () => trial.begin?.(service));
  const { times: burstTimes, burstMinutes } = trial;
  for (
    let minute = fromMinute;
    burstTimes > 1 && minute < toMinute;
    minute += trial.everyMinutes ?? toMinute
  ) {
    simulation.after(minute * MINUTE_MS, () => {
      const more = ratePerSecond * (burstTimes - 1);
      const burst = startLoad(
        service,
        { kind: 'open', via: 'queue', ratePerSecond: more, arrivals: 'poisson' },
        trial.sample,
      );
      simulation.after((burstMinutes ?? toMinute - minute) * MINUTE_MS, () => burst.stop());
    });
  }
  simulation.after(toMinute * MINUTE_MS, () => trial.end?.(service));

  const metrics = createMetricsSource(service, scrapeIntervalMs);
  const scaler = new Scaler(settings);
  const snapshots: TrialSnapshot[] = [];
  let starting = 0;
  simulation.every(DECISION_INTERVAL_MS, () => {
    const ready = service.pods.length;
    const pods = ready + starting;
    const next = scaler.decide(simulation.nowMs / 1_000, pods, ready, metrics());
    for (let more = pods; more < next; more += 1) {
      starting += 1;
      simulation.after(times.dispatcher.startMs, () => {
        starting -= 1;
        service.addPod();
      });
    }
    for (let fewer = pods; fewer > next; fewer -= 1) service.removePod();
    const { jobs, oldestSeconds } = service.backlog();
    const { cpuPercent } = metrics();
    snapshots.push({
      ...{ minute: simulation.nowMs / MINUTE_MS, pods: next, oldestSeconds, jobs, cpuPercent },
      deferred: lanes.deferredCount,
    });
  });
  simulation.runUntil(trial.minutes * MINUTE_MS);
  load.stop();
  return snapshots;
}

/** Returns what the scaler sees: the backlog measured before the last scrape, and the CPU of the last half minute. */
function createMetricsSource(service: Service, scrapeIntervalMs: number): () => Metrics {
  const { simulation } = service;
  let measured = service.backlog();
  let scraped = measured;
  let cpuPercent = 0;
  const cpuMs = () => service.pods.reduce((sum, { thread }) => sum + thread.cpuMs, 0);
  let before = { ms: 0, pods: service.pods.length };
  simulation.every(MEASURE_INTERVAL_MS, () => {
    measured = service.backlog();
  });
  simulation.every(scrapeIntervalMs, () => {
    scraped = measured;
  });
  simulation.every(CPU_WINDOW_MS, () => {
    const ms = cpuMs();
    // Skipped if a pod was removed, because its CPU time is no longer in the sum.
    if (service.pods.length >= before.pods)
      cpuPercent = ((ms - before.ms) / CPU_WINDOW_MS / service.pods.length) * 100;
    before = { ms, pods: service.pods.length };
  });
  return () => ({ ...scraped, cpuPercent });
}

/** Counts how often the number of pods began to rise and to fall. */
export function countChanges(snapshots: readonly TrialSnapshot[]): { ups: number; downs: number } {
  let direction = 0;
  const count = { ups: 0, downs: 0 };
  snapshots.slice(1).forEach(({ pods }, index) => {
    const change = Math.sign(pods - (snapshots[index]?.pods ?? pods));
    if (change === 0 || change === direction) return;
    direction = change;
    if (change > 0) count.ups += 1;
    else count.downs += 1;
  });
  return count;
}
