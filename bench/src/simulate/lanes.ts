import type { Random } from './engine.ts';
import type { Item } from './jobs.ts';
import type { Service } from './service.ts';

/** State of an endpoint: `hangs` until the deadline, `rejects` immediately. */
export type Health = 'responds' | 'hangs' | 'rejects';

const FAILING_AFTER = 3;
const RECENT_MAX = 20;
const SILENCE_MS = 500;
const SILENT_MAX = 4;
const IMMEDIATE_MAX = 128;
const WITH_JOB_MAX = 96;
const QUEUED_MAX = 64;
const PROBE_GAP_MS = 100;
const PROBE_GAP_MAX_MS = 5_000;

/**
 * An endpoint with simplified rules of the dispatchers' limiter (policy/subscription-limiter.ts): it is limited by its
 * success rate, probed while it fails, and reopened step by step; other deliveries are deferred. One instance for all
 * dispatchers, which in reality have separate views.
 */
export class Lane {
  health: Health = 'responds';
  /** Results of the last attempts, oldest first. */
  #recent: boolean[] = [];
  #inFlight = 0;
  #lastResponseMs = 0;
  #probesFailed = 0;
  #window = QUEUED_MAX;
  #isDraining = false;
  readonly #deferred: Item[] = [];
  #deferredCount = 0;
  readonly #service: () => Service;

  constructor(service: () => Service) {
    this.#service = service;
  }

  get deferredCount(): number {
    return this.#deferredCount;
  }

  /** Whether new deliveries are deferred. */
  isClosed(nowMs: number): boolean {
    if (this.#isFailing) return true;
    const isSilent = this.#inFlight > 0 && nowMs - this.#lastResponseMs > SILENCE_MS + 3 * this.#typicalMs;
    const openMax = (this.#isDraining ? WITH_JOB_MAX : IMMEDIATE_MAX) * this.#successRate;
    const pods = this.#service().pods.length;
    return this.#inFlight >= Math.max(1, isSilent ? Math.min(SILENT_MAX, openMax) : openMax) * pods;
  }

  get #isFailing(): boolean {
    return this.#recent.length >= FAILING_AFTER && !this.#recent.includes(true);
  }

  get #successRate(): number {
    if (this.#recent.length === 0) return 1;
    return this.#recent.filter((succeeded) => succeeded).length / this.#recent.length;
  }

  get #typicalMs(): number {
    return this.#service().setup.responseTime.p50Ms;
  }

  begin(count: number, nowMs: number): void {
    if (this.#inFlight === 0) this.#lastResponseMs = nowMs;
    this.#inFlight += count;
  }

  end(count: number, succeeded: boolean, nowMs: number): void {
    this.#inFlight -= count;
    this.#lastResponseMs = nowMs;
    this.#addResults(count, succeeded);
  }

  #addResults(count: number, succeeded: boolean): void {
    const added = Array.from({ length: Math.min(count, RECENT_MAX) }, () => succeeded);
    this.#recent = [...this.#recent, ...added].slice(-RECENT_MAX);
  }

  defer(item: Item): void {
    this.#deferred.push(item);
    this.#deferredCount += item.count;
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#window = 1;
    this.#service().simulation.after(PROBE_GAP_MS, () => this.#drain());
  }

  /** The lane's job takes as many deliveries as there are slots, attempts them, and is scheduled again. */
  #drain(): void {
    const service = this.#service();
    const pod = service.anyPod();
    const count = Math.min(this.#window, this.#deferredCount);
    const scheduleDrain = (gapMs: number) => service.simulation.after(gapMs, () => this.#drain());
    if (pod === undefined) {
      scheduleDrain(PROBE_GAP_MAX_MS);
      return;
    }
    pod.drain(this, count, (succeeded) => {
      if (succeeded) this.#completed(count);
      this.#probesFailed = succeeded ? 0 : this.#probesFailed + 1;
      this.#window = succeeded ? Math.min(QUEUED_MAX, this.#window * 2) : 1;
      this.#addResults(count, succeeded);
      this.#isDraining = this.#deferredCount > 0;
      if (!this.#isDraining) return;
      scheduleDrain(succeeded ? 0 : Math.min(PROBE_GAP_MS * 2 ** this.#probesFailed, PROBE_GAP_MAX_MS));
    });
  }

  #completed(count: number): void {
    const service = this.#service();
    this.#deferredCount -= count;
    let left = count;
    while (left > 0) {
      const first = this.#deferred[0] as Item;
      const part = Math.min(left, first.count);
      service.recordArrival({ ...first, count: part });
      first.count -= part;
      left -= part;
      if (first.count === 0) this.#deferred.shift();
    }
  }
}

/** All endpoints; each delivery is assigned to one at random. */
export class Lanes {
  readonly all: Lane[];

  /** @param service called later, because service and lanes refer to each other */
  constructor(count: number, service: () => Service) {
    this.all = Array.from({ length: count }, () => new Lane(service));
  }

  pick(random: Random): Lane {
    return this.all[random.below(this.all.length)] as Lane;
  }

  get deferredCount(): number {
    return this.all.reduce((sum, lane) => sum + lane.deferredCount, 0);
  }
}
