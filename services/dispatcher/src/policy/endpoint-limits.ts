/** Attempts that share a limit, by where they are made. */
interface Pool {
  /** Attempts of one endpoint at a time. */
  readonly limits: Record<EndpointClass, number>;
  /** Of all endpoints together that are not answering: a thousand that never answer get no more. */
  readonly doubtfulMax: number;
  doubtful: number;
}

/** Leave for one attempt on an endpoint. Must be released, once. */
export interface Slot {
  readonly pool: Pool;
  readonly state: EndpointState;
  readonly isDoubtful: boolean;
  readonly startMs: number;
}

/** No slot is free: the delivery comes again after this, without an attempt. */
export interface Postponement {
  postponeMs: number;
}

export interface EndpointLimitsOptions {
  /** Jobs that each worker may have in flight. */
  concurrency: number;
  nowMs?: () => number;
}

const REMEMBERED_MAX = 20_000;
const POSTPONE_MIN_MS = 100;
const POSTPONE_MAX_MS = 30_000;
const IN_PLACE = { answering: 128, unproven: 16, silent: 4, failing: 4, excluded: 0 };
const QUEUED = { answering: 64, unproven: 4, silent: 4, failing: 4, excluded: 4 };
/** From the queue, for an endpoint whose attempts end soon, even if badly: it holds nobody up. */
const QUEUED_QUICK = 16;
const QUICK_MS = 500;

/**
 * How many attempts one endpoint may have in flight, so that none can hold what all need. First attempts are made in
 * place, by the event's job: generously while the endpoint answers, a few while that is open, none after many failures
 * in a row, when its deliveries go to the overflow queue from the start, until one of them succeeds. Attempts from that
 * queue have slots of their own, which are limited the same way; what finds none is postponed.
 */
export class EndpointLimits {
  readonly #nowMs: () => number;
  readonly #states: EndpointStates;
  readonly #inPlace: Pool;
  readonly #queued: Pool;
  #nextDoubtfulSlotAtMs = 0;

  constructor({ concurrency, nowMs = () => performance.now() }: EndpointLimitsOptions) {
    this.#nowMs = nowMs;
    this.#states = new EndpointStates({ sizeMax: REMEMBERED_MAX, nowMs });
    // A quarter of the event jobs and half of the queued deliveries: the rest is for endpoints that answer.
    this.#inPlace = { limits: IN_PLACE, doubtfulMax: Math.ceil(concurrency / 4), doubtful: 0 };
    this.#queued = { limits: QUEUED, doubtfulMax: Math.ceil(concurrency / 2), doubtful: 0 };
  }

  /** For a first attempt in place; null: it belongs to the overflow queue. */
  acquireInPlace(endpoint: string): Slot | null {
    return this.#acquire(this.#inPlace, this.#states.of(endpoint));
  }

  /** For an attempt from the queue. */
  acquireQueued(endpoint: string): Slot | Postponement {
    const state = this.#states.of(endpoint);
    return this.#acquire(this.#queued, state) ?? this.#postpone(state);
  }

  release({ pool, state, isDoubtful, startMs }: Slot, succeeded: boolean): void {
    if (isDoubtful) pool.doubtful -= 1;
    this.#states.end(state, { succeeded, tookMs: this.#nowMs() - startMs });
  }

  #acquire(pool: Pool, state: EndpointState): Slot | null {
    const kind = this.#states.classOf(state);
    if (state.inFlight >= this.#limitOf(pool, kind, state)) return null;
    const isDoubtful = kind !== 'answering';
    if (isDoubtful && pool.doubtful >= pool.doubtfulMax) return null;
    if (isDoubtful) pool.doubtful += 1;
    this.#states.begin(state);
    return { pool, state, isDoubtful, startMs: this.#nowMs() };
  }

  #limitOf(pool: Pool, kind: EndpointClass, { heldMs }: EndpointState): number {
    const limit = pool.limits[kind];
    return pool === this.#queued && heldMs < QUICK_MS ? Math.max(limit, QUEUED_QUICK) : limit;
  }

  /**
   * Deliveries that are postponed come again one after another, at the pace at which slots become free: all at once
   * they would only be postponed again. The pace is that of the endpoint, and for doubtful ones that of all of them.
   */
  #postpone(state: EndpointState): Postponement {
    const now = this.#nowMs();
    const earliest = now + POSTPONE_MIN_MS;
    const isAnswering = this.#states.classOf(state) === 'answering';
    const { heldMs } = state;
    const slots = this.#limitOf(this.#queued, isAnswering ? 'answering' : 'failing', state);
    state.nextSlotAtMs = Math.max(earliest, state.nextSlotAtMs + heldMs / slots);
    let slotAtMs = state.nextSlotAtMs;
    if (!isAnswering) {
      const paceMs = heldMs / this.#queued.doubtfulMax;
      this.#nextDoubtfulSlotAtMs = Math.max(earliest, this.#nextDoubtfulSlotAtMs + paceMs);
      slotAtMs = Math.max(slotAtMs, this.#nextDoubtfulSlotAtMs);
    }
    // However many are postponed: an endpoint that comes back must not wait for the last of them.
    state.nextSlotAtMs = Math.min(state.nextSlotAtMs, now + POSTPONE_MAX_MS);
    this.#nextDoubtfulSlotAtMs = Math.min(this.#nextDoubtfulSlotAtMs, now + POSTPONE_MAX_MS);
    return { postponeMs: Math.ceil(Math.min(slotAtMs - now, POSTPONE_MAX_MS)) };
  }
}

/**
 * What is known of endpoints, from the attempts on them. `answering`: the latest ones succeeded. `unproven`: none has
 * yet. `silent`: others answer, and it has not for a while though requests are in flight. `failing`: several in a row
 * failed. `excluded`: many in a row failed.
 */
export type EndpointClass = 'answering' | 'unproven' | 'silent' | 'failing' | 'excluded';

export interface EndpointState {
  /** Attempts on their way, wherever they were begun. */
  inFlight: number;
  failuresInRow: number;
  hasSucceeded: boolean;
  /** When it answered last, or since when it has had something to answer. */
  heardAtMs: number;
  /** What an attempt that succeeds takes, as a moving average. */
  typicalMs: number;
  /** What any attempt takes, however it ends: how soon slots become free. */
  heldMs: number;
  /** When the next of its deliveries that had to be postponed is due. */
  nextSlotAtMs: number;
}

const FAILING_AFTER = 3;
const EXCLUDED_AFTER = 10;
const SILENCE_MS = 500;
/** Of an endpoint's typical time: one that takes long is not silent while it does. */
const SILENCE_TYPICAL_TIMES = 3;
const TYPICAL_WEIGHT = 0.1;
const HELD_WEIGHT = 0.5;
/** Before the first attempt has ended. */
const HELD_GUESS_MS = 200;

class EndpointStates {
  readonly #sizeMax: number;
  readonly #nowMs: () => number;
  /** Least recently used first. No lru-cache: what has attempts in flight must stay, and that one cannot pass over it. */
  readonly #states = new Map<string, EndpointState>();
  /** Silence is measured against the others: while this process itself hangs, nobody is heard. */
  #anyHeardAtMs: number;

  /** @param options.sizeMax endpoints remembered; more only while all of them have attempts in flight */
  constructor({ sizeMax, nowMs }: { sizeMax: number; nowMs: () => number }) {
    this.#sizeMax = sizeMax;
    this.#nowMs = nowMs;
    this.#anyHeardAtMs = nowMs();
  }

  of(endpoint: string): EndpointState {
    const known = this.#states.get(endpoint);
    if (!known) return this.#make(endpoint);
    // A Map keeps the order of insertion: the end is what was used last.
    this.#states.delete(endpoint);
    this.#states.set(endpoint, known);
    return known;
  }

  classOf(state: EndpointState): EndpointClass {
    if (state.failuresInRow >= EXCLUDED_AFTER) return 'excluded';
    if (state.failuresInRow >= FAILING_AFTER) return 'failing';
    if (this.#isSilent(state)) return 'silent';
    return state.hasSucceeded ? 'answering' : 'unproven';
  }

  begin(state: EndpointState): void {
    if (state.inFlight === 0) state.heardAtMs = this.#nowMs();
    state.inFlight += 1;
  }

  end(state: EndpointState, { succeeded, tookMs }: { succeeded: boolean; tookMs: number }): void {
    state.inFlight -= 1;
    state.heardAtMs = this.#nowMs();
    this.#anyHeardAtMs = state.heardAtMs;
    state.heldMs += (tookMs - state.heldMs) * HELD_WEIGHT;
    state.failuresInRow = succeeded ? 0 : state.failuresInRow + 1;
    if (!succeeded) return;
    state.typicalMs += (tookMs - state.typicalMs) * (state.hasSucceeded ? TYPICAL_WEIGHT : 1);
    state.hasSucceeded = true;
    state.nextSlotAtMs = 0;
  }

  #make(endpoint: string): EndpointState {
    if (this.#states.size >= this.#sizeMax) this.#forgetOne();
    const state: EndpointState = {
      inFlight: 0,
      failuresInRow: 0,
      hasSucceeded: false,
      heardAtMs: this.#nowMs(),
      typicalMs: 0,
      heldMs: HELD_GUESS_MS,
      nextSlotAtMs: 0,
    };
    this.#states.set(endpoint, state);
    return state;
  }

  #forgetOne(): void {
    for (const [endpoint, { inFlight }] of this.#states) {
      if (inFlight > 0) continue;
      this.#states.delete(endpoint);
      return;
    }
  }

  #isSilent({ inFlight, heardAtMs, typicalMs }: EndpointState): boolean {
    const silenceMs = Math.max(SILENCE_MS, SILENCE_TYPICAL_TIMES * typicalMs);
    return inFlight > 0 && this.#anyHeardAtMs - heardAtMs > silenceMs;
  }
}
