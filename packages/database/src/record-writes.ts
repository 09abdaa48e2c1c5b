import { openDatabase, type Queryable } from './open-database.ts';
import { isItemFault, runStatement } from './statements.ts';

/** After this time without a write the record counts as not writable. */
const UNWRITTEN_MAX_MS = 30_000;
export const WRITE_CHECK_EVERY_MS = 10_000;
/** A probe that waits for a lock or a connection must end before the next one. */
const PROBE_TIMEOUT_MS = 5_000;

const PROBE = `
  INSERT INTO record_probe (id, written_at) VALUES (1, clock_timestamp())
  ON CONFLICT (id) DO UPDATE SET written_at = EXCLUDED.written_at`;

/** Writes one row. */
export async function probeWrite(database: Queryable): Promise<void> {
  await runStatement(database, PROBE, [], undefined, PROBE_TIMEOUT_MS);
}

/** As {@link probeWrite}, over a new connection that it closes again. */
export async function probeWriteElsewhere(url: string): Promise<void> {
  const { pool, close } = openDatabase({ url, connectionsMax: 1, statementTimeoutMs: PROBE_TIMEOUT_MS });
  try {
    await probeWrite(pool);
  } finally {
    await close();
  }
}

/**
 * `writable`; `unwritable` when no write has been possible for 30 s, over any connection; `own_fault` when only the
 * connections of this process cannot write.
 */
export type RecordState = 'writable' | 'unwritable' | 'own_fault';

export interface RecordWritesOptions {
  /** Writes one row over the connections of this process. */
  write: () => Promise<void>;
  /** Writes one row over another connection; omitted where the difference does not matter. */
  writeElsewhere?: () => Promise<void>;
  /** Called with each change of the state, and the error of the last write. */
  onChange?: (state: RecordState, error: unknown) => void;
  /** Milliseconds that only grow. */
  nowMs?: () => number;
}

/**
 * Whether the record can be written, from the writes that a process makes anyway and, while it makes none, from a probe.
 * `check` must be called every {@link WRITE_CHECK_EVERY_MS}.
 */
export class RecordWrites {
  readonly #options: RecordWritesOptions;
  readonly #nowMs: () => number;
  #writtenAtMs: number;
  #isNoted = false;
  #error: unknown = null;
  #state: RecordState = 'writable';

  constructor(options: RecordWritesOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#writtenAtMs = this.#nowMs();
  }

  /** As of the last check. */
  get state(): RecordState {
    return this.#state;
  }

  /** Runs work that writes to the record, and notes whether the write was possible. */
  async track<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      this.#writtenAtMs = this.#nowMs();
      this.#error = null;
      this.#isNoted = true;
      return result;
    } catch (error) {
      // A rejection of invalid data does not mean that the record takes no writes.
      if (!isItemFault(error)) {
        this.#error = error;
        this.#isNoted = true;
      }
      throw error;
    }
  }

  /** Writes a row if nothing was written since the last check, and settles the state. */
  async check(): Promise<void> {
    const { write, onChange } = this.#options;
    if (!this.#isNoted) await this.track(write).catch(() => undefined);
    this.#isNoted = false;
    const state = await this.#nextState();
    if (state === this.#state) return;
    this.#state = state;
    onChange?.(state, this.#error);
  }

  async #nextState(): Promise<RecordState> {
    const isLate = this.#error !== null && this.#nowMs() - this.#writtenAtMs >= UNWRITTEN_MAX_MS;
    if (!isLate) return 'writable';
    const { writeElsewhere } = this.#options;
    if (writeElsewhere === undefined) return 'unwritable';
    return await writeElsewhere().then(
      () => 'own_fault',
      () => 'unwritable',
    );
  }
}
