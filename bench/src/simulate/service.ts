import type { RetryPolicy } from '@runhook/dispatcher/retry-schedule';
import { Batcher } from './batcher.ts';
import type { Simulation } from './engine.ts';
import { type Item, type Job, JobQueue } from './jobs.ts';
import type { Lanes } from './lanes.ts';
import { ADDING_SHARE, Pod } from './pod.ts';
import { Cores, LogDevice, Servers, Thread } from './stations.ts';
import type { ServiceTimes } from './times.ts';

/** The setup that is simulated: processes, stores and endpoints. */
export interface Setup {
  dispatchers: number;
  management: number;
  shards: number;
  redisNodes: number;
  databaseCores: number;
  concurrency: number;
  deliveriesPerEvent: number;
  /** Response time: median and 99th percentile. */
  responseTime: { p50Ms: number; p99Ms: number };
  /** Share of failed attempts at endpoints that otherwise respond. */
  failureShare: number;
  endpoints: number;
  retry: RetryPolicy;
  timeoutMs: number;
  /** Cores that all parts share with the endpoints and the load; null if each part has its own. */
  machineCores: number | null;
}

export const DEFAULT_SETUP: Setup = {
  dispatchers: 2,
  management: 2,
  shards: 1,
  redisNodes: 1,
  databaseCores: 4,
  concurrency: 384,
  deliveriesPerEvent: 1,
  responseTime: { p50Ms: 50, p99Ms: 500 },
  failureShare: 0.01,
  endpoints: 200,
  retry: { retriesMax: 5, baseDelayMs: 30_000 },
  timeoutMs: 10_000,
  machineCores: null,
};

const REPORTS = {
  sizeMax: 200,
  sizeOf: ({ count }: Call) => count,
  slots: 2,
  spacingMs: 8,
};
const EVENTS_IN_JOB_MAX = 20;
const RELAY_MAX = 500;

interface Call {
  count: number;
  intendedMs: number;
  onResponse: () => void;
}

/** Runhook, its stores and its endpoints, on a virtual clock. */
export class Service {
  readonly simulation: Simulation;
  readonly times: ServiceTimes;
  readonly setup: Setup;
  readonly pods: Pod[] = [];
  readonly lanes: Lanes;
  readonly redis: Thread[];
  readonly database: Servers;
  readonly databaseCores: Cores;
  readonly log: LogDevice;
  readonly machine: Cores | null;
  readonly networkMs: number;
  readonly #managements: { thread: Thread; batcher: Batcher<Call>; relay: Call[]; isRelaying: boolean }[] =
    [];
  readonly #receiver: Thread | null;
  readonly #loader: Thread | null;
  /** Queues by shard and kind, in the order of arrival. */
  readonly #queues: { event: JobQueue; retry: JobQueue }[];
  #podsMade = 0;
  /** Number of deliveries so far; `onDelivered` gets each one with its time. */
  delivered = 0;
  onDelivered: (item: Item, atMs: number) => void = () => undefined;
  onAccepted: (count: number, tookMs: number) => void = () => undefined;
  /** Factor by which a trial slows the database down. */
  databaseSlowness = 1;

  constructor(simulation: Simulation, times: ServiceTimes, setup: Setup, lanes: Lanes) {
    this.simulation = simulation;
    this.times = times;
    this.setup = setup;
    this.lanes = lanes;
    this.machine =
      setup.machineCores === null ? null : new Cores(setup.machineCores, times.machine.sharingShare);
    const { unevenness, coldHalfMs } = times.machine;
    const createCores = (cores = 1) => this.machine ?? new Cores(cores);
    this.redis = Array.from(
      { length: setup.redisNodes },
      () =>
        new Thread(simulation, {
          ...{ cores: createCores(), wakeMicros: times.redis.wakeMicros, coldHalfMs, unevenness },
        }),
    );
    this.databaseCores = createCores(setup.databaseCores);
    const { wakeMicros } = times.postgres;
    const { logBytesPerSecond } = times.cluster;
    const { flushMs } = this.machine === null ? times.cluster : times.postgres;
    this.networkMs = (this.machine === null ? times.cluster : times.machine).networkMs;
    const slowness = () => this.databaseSlowness;
    this.database = new Servers(simulation, {
      ...{ cores: this.databaseCores, wakeMicros, coldHalfMs, unevenness, slowness },
    });
    this.log = new LogDevice(simulation, {
      flushMs: () => flushMs * this.databaseSlowness,
      bytesPerSecond: logBytesPerSecond,
    });
    this.#queues = Array.from({ length: setup.shards }, () => ({
      event: new JobQueue(),
      retry: new JobQueue(),
    }));
    this.#receiver = this.machine && new Thread(simulation, { cores: this.machine, unevenness });
    this.#loader = this.machine && new Thread(simulation, { cores: this.machine, unevenness });
    for (let index = 0; index < setup.management; index += 1) this.#addManagement(createCores());
    for (let index = 0; index < setup.dispatchers; index += 1) this.addPod();
  }

  addPod(): void {
    this.pods.push(new Pod(this, this.#podsMade++, this.machine ?? new Cores(1)));
  }

  /** Removes a pod, which finishes its jobs in flight and takes no more. */
  removePod(): void {
    this.pods.pop()?.stop();
  }

  /** Runs work of the load or of an endpoint, if these share the machine. */
  runOnLoadThread(which: 'receiver' | 'loader', micros: number, done: () => void): void {
    const thread = which === 'receiver' ? this.#receiver : this.#loader;
    if (thread === null) done();
    else thread.run(micros, done);
  }

  /**
   * Executes an SQL statement: its fixed cost plus `micros` for its rows, then a flush of `walBytes` of the write-ahead
   * log.
   */
  statement(micros: number, walBytes: number, done: () => void): void {
    const { networkMs } = this;
    const respond = () => this.simulation.after(networkMs, done);
    this.simulation.after(networkMs, () =>
      this.database.run(this.times.postgres.statementMicros + micros, () => {
        if (walBytes === 0) respond();
        else this.log.flush(walBytes, respond);
      }),
    );
  }

  /** Handles a runner's REST call, which gets its response after the commit. */
  call(count: number, onResponse: () => void = () => undefined): void {
    const { callMicros } = this.times.management;
    const { nowMs, random } = this.simulation;
    const management = this.#managements[random.below(this.#managements.length)];
    if (management === undefined) throw new Error('no process takes calls: there is no management');
    this.runOnLoadThread('loader', this.times.machine.reporterMicros * count, () =>
      management.thread.run(callMicros * count, () =>
        management.batcher.add({ count, intendedMs: nowMs, onResponse }),
      ),
    );
  }

  #addManagement(cores: Cores): void {
    const { iterationMicros, wakeMicros, helperShare, batchMicros } = this.times.management;
    const { reportStatementMicros, statementMicros, reportRowMicros, walBytes } = this.times.postgres;
    const { unevenness, coldHalfMs } = this.times.machine;
    const pauses = { share: this.times.management.pauseShare, ms: this.times.machine.pauseMs };
    const thread = new Thread(this.simulation, {
      ...{ cores, iterationMicros, wakeMicros, coldHalfMs, helperShare, pauses, unevenness },
    });
    const batcher = new Batcher<Call>(this.simulation, {
      ...REPORTS,
      run: (calls, done) => {
        const count = calls.reduce((sum, call) => sum + call.count, 0);
        const micros = reportStatementMicros - statementMicros + reportRowMicros * count;
        this.statement(micros, (walBytes * count) / 2, () =>
          thread.run(batchMicros, () => {
            done();
            one.relay.push(...calls);
            this.#relay(one);
            for (const call of calls) {
              this.onAccepted(call.count, this.simulation.nowMs - call.intendedMs);
              call.onResponse();
            }
          }),
        );
      },
    });
    const one = { thread, batcher, relay: [] as Call[], isRelaying: false };
    this.#managements.push(one);
  }

  #relay(one: { thread: Thread; relay: Call[]; isRelaying: boolean }): void {
    if (one.isRelaying || one.relay.length === 0) return;
    one.isRelaying = true;
    const calls = one.relay.splice(0, RELAY_MAX);
    this.publish(
      calls.map(({ count, intendedMs }) => ({ count, intendedMs })),
      () =>
        one.thread.run(this.times.management.batchMicros, () => {
          one.isRelaying = false;
          this.#relay(one);
        }),
    );
  }

  /** Adds events to the queue, several per job, as the publisher does. */
  publish(
    events: readonly { count: number; intendedMs: number }[],
    done: () => void = () => undefined,
  ): void {
    const shard = this.simulation.random.below(this.setup.shards);
    let pending = 0;
    for (let start = 0; start < events.length; start += EVENTS_IN_JOB_MAX) {
      const batch = events.slice(start, start + EVENTS_IN_JOB_MAX);
      const count = batch.reduce((sum, event) => sum + event.count, 0);
      const items = batch.flatMap((event) =>
        Array.from({ length: this.setup.deliveriesPerEvent }, () => this.#item(event)),
      );
      const jobs = Math.max(1, Math.ceil(count / EVENTS_IN_JOB_MAX));
      pending += 1;
      this.enqueue({ kind: 'event', jobs, events: count, items, addedMs: 0 }, shard, () => {
        pending -= 1;
        if (pending === 0) done();
      });
    }
  }

  #item(event: { count: number; intendedMs: number }): Item {
    return { ...event, lane: this.lanes.pick(this.simulation.random), attempts: 0 };
  }

  redisWork(shard: number, micros: number, done: () => void): void {
    const { networkMs } = this;
    this.simulation.after(networkMs, () =>
      (this.redis[shard % this.redis.length] as Thread).run(micros, () =>
        this.simulation.after(networkMs, done),
      ),
    );
  }

  enqueue(job: Job, shard: number, done: () => void = () => undefined): void {
    const { jobMicros, eventMicros } = this.times.redis;
    this.redisWork(shard, (jobMicros * job.jobs + eventMicros * job.events) * ADDING_SHARE, () => {
      job.addedMs = this.simulation.nowMs;
      this.#queues[shard]?.[job.kind].push(job);
      done();
      this.#wakePod(shard, job.kind);
    });
  }

  /** Wakes a pod that waits at the shard, starting with a random one, so that all get a share. */
  #wakePod(shard: number, kind: Job['kind']): void {
    const { length } = this.pods;
    const start = this.simulation.random.below(Math.max(1, length));
    for (let index = 0; index < length; index += 1)
      if (this.pods[(start + index) % length]?.wake(shard, kind)) return;
  }

  take(shard: number, kind: Job['kind']): Job | undefined {
    return this.#queues[shard]?.[kind].shift();
  }

  hasWaiting(shard: number, kind: Job['kind']): boolean {
    return (this.#queues[shard]?.[kind].length ?? 0) > 0;
  }

  /** The backlog as the dispatchers report it. */
  backlog(): { jobs: number; oldestSeconds: number } {
    let jobs = 0;
    let oldestMs = this.simulation.nowMs;
    for (const queues of this.#queues) {
      for (const queue of [queues.event, queues.retry]) {
        jobs += queue.jobs;
        oldestMs = Math.min(oldestMs, queue.first?.addedMs ?? oldestMs);
      }
    }
    return { jobs, oldestSeconds: (this.simulation.nowMs - oldestMs) / 1_000 };
  }

  get managementCpuMs(): number {
    return this.#managements.reduce((sum, { thread }) => sum + thread.cpuMs, 0);
  }

  get managementBusyMs(): number {
    return this.#managements.reduce((sum, { thread }) => sum + thread.busyMs, 0);
  }

  anyPod(): Pod | undefined {
    return this.pods[this.simulation.random.below(this.pods.length)];
  }

  /** Records that an item has arrived at its endpoint. */
  recordArrival(item: Item): void {
    this.delivered += item.count;
    this.onDelivered(item, this.simulation.nowMs);
  }
}
