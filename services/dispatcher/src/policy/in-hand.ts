import { Semaphore } from '@runhook/runtime';

/** Enough for full batches at the rate that a processor comes to, where endpoints answer at once. */
const ALWAYS = 128;
/** A turn of the event loop that takes longer than this has enough to do. */
const PROMPT_MS = 4;
/** Of those that a prompt turn lets in beside. */
const EACH_TURN = 16;
/** With so many that wait, no more are fetched. */
const CROWD = 64;

export interface InHandOptions {
  /** Never more than this. */
  max: number;
  /** So many whatever the event loop does. */
  always?: number;
  nowMs?: () => number;
  /** Runs once everything that is there to do by now is done. */
  afterTurn?: (run: () => void) => void;
}

/**
 * Events that are worked on. Endpoints that take their time need hundreds of them at once; where the processor is what is short,
 * more than it takes to keep that busy wait for each other, and all that they hold is copied by each collection of garbage: with
 * 384 in hand a third of a saturated dispatcher was that. So a few are always let in, and more while the event loop is prompt.
 */
export class InHand {
  readonly #options: Required<InHandOptions>;
  readonly #places: Semaphore;
  readonly #always: number;
  #beside = 0;
  #isScheduled = false;
  #wasCrowded = false;
  /** Called when they are not crowded any more. */
  onThin: () => void = () => {};

  constructor(options: InHandOptions) {
    this.#options = { always: ALWAYS, nowMs: () => performance.now(), afterTurn: setImmediate, ...options };
    this.#always = Math.min(options.max, this.#options.always);
    this.#places = new Semaphore(this.#always);
  }

  /** Whether more wait than soon have their turn. */
  get isCrowded(): boolean {
    return this.#places.waiting >= CROWD;
  }

  /**
   * Undefined when there was room. Whoever acquired must release.
   * @param isBehind waits until nobody else does
   */
  acquire(isBehind: boolean): Promise<void> | undefined {
    const entering = this.#places.acquire(1, isBehind);
    if (entering !== undefined) {
      this.#wasCrowded ||= this.isCrowded;
      this.#letMoreIn();
    }
    return entering;
  }

  release(): void {
    if (this.#beside > 0) {
      this.#beside -= 1;
      this.#letMoreIn();
    } else this.#places.release();
    this.#tellThin();
  }

  /** What has a place beside the few has it once: the next one needs a prompt turn, too. */
  #letMoreIn(): void {
    const { max, nowMs, afterTurn } = this.#options;
    const hasRoom = () => this.#places.waiting > 0 && this.#always + this.#beside < max;
    if (this.#isScheduled || !hasRoom()) return;
    this.#isScheduled = true;
    const startMs = nowMs();
    afterTurn(() => {
      this.#isScheduled = false;
      const isPrompt = nowMs() - startMs < PROMPT_MS;
      for (let count = 0; isPrompt && count < EACH_TURN && hasRoom(); count += 1) {
        this.#beside += 1;
        this.#places.release();
      }
      this.#tellThin();
      this.#letMoreIn();
    });
  }

  #tellThin(): void {
    if (!this.#wasCrowded || this.isCrowded) return;
    this.#wasCrowded = false;
    this.onThin();
  }
}
