import type { Random } from './engine.ts';
import type { Item } from './jobs.ts';
import type { Service } from './service.ts';

/** State of an endpoint: `hangs` until the deadline, `refuses` immediately. */
export type Health = 'answers' | 'hangs' | 'refuses';

const FAILING_AFTER = 3;
const SILENCE_MS = 500;
const SILENT_MAX = 4;
const IN_PLACE_MAX = 128;
const QUEUED_MAX = 64;
const PROBE_GAP_MS = 100;
const PROBE_GAP_MAX_MS = 5_000;

/**
 * An endpoint with simplified rules of the dispatchers' lanes (policy/subscription-limiter.ts): a failing endpoint is
 * probed, other deliveries are deferred, and it is reopened step by step. One instance for all dispatchers, which in
 * reality have separate views.
 */
export class Lane {
  health: Health = 'answers';
  #failuresInRow = 0;
  #inFlight = 0;
  #heardMs = 0;
  #probesFailed = 0;
  #window = QUEUED_MAX;
  #isDraining = false;
  readonly #parked: Item[] = [];
  #parkedCount = 0;
  readonly #service: () => Service;

  constructor(service: () => Service) {
    this.#service = service;
  }

  get parkedCount(): number {
    return this.#parkedCount;
  }

  /** Whether new deliveries are deferred. They are if others already are, because they must not overtake those. */
  isShut(nowMs: number): boolean {
    if (this.#failuresInRow >= FAILING_AFTER || this.#parkedCount > 0) return true;
    const isSilent = this.#inFlight > 0 && nowMs - this.#heardMs > SILENCE_MS + 3 * this.#typicalMs;
    const pods = this.#service().pods.length;
    return this.#inFlight >= (isSilent ? SILENT_MAX : IN_PLACE_MAX) * pods;
  }

  get #typicalMs(): number {
    return this.#service().setup.answer.p50Ms;
  }

  begin(count: number, nowMs: number): void {
    if (this.#inFlight === 0) this.#heardMs = nowMs;
    this.#inFlight += count;
  }

  end(count: number, succeeded: boolean, nowMs: number): void {
    this.#inFlight -= count;
    this.#heardMs = nowMs;
    this.#failuresInRow = succeeded ? 0 : this.#failuresInRow + count;
  }

  park(item: Item): void {
    this.#parked.push(item);
    this.#parkedCount += item.count;
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#window = 1;
    this.#service().simulation.after(PROBE_GAP_MS, () => this.#turn());
  }

  /** The lane's job takes as many deliveries as there are slots, attempts them, and is scheduled again. */
  #turn(): void {
    const service = this.#service();
    const pod = service.anyPod();
    const count = Math.min(this.#window, this.#parkedCount);
    const again = (gapMs: number) => service.simulation.after(gapMs, () => this.#turn());
    if (pod === undefined) {
      again(PROBE_GAP_MAX_MS);
      return;
    }
    pod.drain(this, count, (succeeded) => {
      if (succeeded) this.#taken(count);
      this.#probesFailed = succeeded ? 0 : this.#probesFailed + 1;
      this.#window = succeeded ? Math.min(QUEUED_MAX, this.#window * 2) : 1;
      if (succeeded) this.#failuresInRow = 0;
      this.#isDraining = this.#parkedCount > 0;
      if (!this.#isDraining) return;
      again(succeeded ? 0 : Math.min(PROBE_GAP_MS * 2 ** this.#probesFailed, PROBE_GAP_MAX_MS));
    });
  }

  #taken(count: number): void {
    const service = this.#service();
    this.#parkedCount -= count;
    let left = count;
    while (left > 0) {
      const first = this.#parked[0] as Item;
      const part = Math.min(left, first.count);
      service.arrived({ ...first, count: part });
      first.count -= part;
      left -= part;
      if (first.count === 0) this.#parked.shift();
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

  get parkedCount(): number {
    return this.all.reduce((sum, lane) => sum + lane.parkedCount, 0);
  }
}
