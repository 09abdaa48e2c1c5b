import { openDatabase, type Queryable } from './open-database.ts';
import { isDatabaseRejecting, isDatabaseUnavailable, runStatement } from './statements.ts';

/** Time without a successful write of a failing kind after which the record counts as not writable. */
const UNWRITTEN_MAX_MS = 30_000;
/** Age at which a failure is ignored. Longer than the pauses between retries of a write. */
const FAILURE_MAX_AGE_MS = 60_000;
export const WRITE_CHECK_EVERY_MS = 10_000;
/** A write check that waits for a lock or a connection must end before the next one starts. */
const PROBE_TIMEOUT_MS = 5_000;

const WRITE_PROBE = `
  INSERT INTO record_probe (id, written_at) VALUES (1, clock_timestamp())
  ON CONFLICT (id) DO UPDATE SET written_at = EXCLUDED.written_at`;

export async function probeWrite(database: Queryable): Promise<void> {
  await runStatement(database, WRITE_PROBE, [], undefined, PROBE_TIMEOUT_MS);
}

/** Writes one row over a new connection, which it closes afterwards. */
export async function probeWriteOnNewConnection(url: string): Promise<void> {
  const { pool, close } = openDatabase({ url, connectionsMax: 1, statementTimeoutMs: PROBE_TIMEOUT_MS });
  try {
    await probeWrite(pool);
  } finally {
    await close();
  }
}

/**
 * `writable`; `unwritable` when no write of one kind has succeeded for 30 s and another connection cannot write either;
 * `process_fault` when writes of this process fail although another connection can write.
 */
export type RecordState = 'writable' | 'unwritable' | 'process_fault';

export interface RecordWritesOptions {
  /** Writes one row over the connections of this process. */
  write: () => Promise<void>;
  /** Writes one row over another connection; when omitted, the state is never `process_fault`. */
  writeOnNewConnection?: () => Promise<void>;
  /** Called with each change of the state, and the last error of the failing writes; null when writable. */
  onChange?: (state: RecordState, error: unknown) => void;
  /** Monotonic clock in milliseconds. */
  nowMs?: () => number;
}

/** Kind under which the writes of the probe are tracked. */
const PROBE_KIND = 'probe';

/** Failures of one kind of write since its last success. */
interface FailingKind {
  /** Time of the last successful write of any kind before the first failure. */
  sinceMs: number;
  lastFailureMs: number;
  error: unknown;
}

/**
 * Determines whether the record can be written, from the regular writes of a process and, when there are none, from a
 * probe. Writes are tracked by kind, so that writes to one table do not hide failing writes to another. `check` must be
 * called every {@link WRITE_CHECK_EVERY_MS}.
 */
export class RecordWrites {
  readonly #options: RecordWritesOptions;
  readonly #nowMs: () => number;
  readonly #failing = new Map<string, FailingKind>();
  #writtenAtMs: number;
  #hasTracked = false;
  #state: RecordState = 'writable';

  constructor(options: RecordWritesOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#writtenAtMs = this.#nowMs();
  }

  /** State as of the last check. */
  get state(): RecordState {
    return this.#state;
  }

  /**
   * Runs work that writes to the record, and notes whether the write was possible. Any other error, such as a rejection
   * of invalid data, is not counted.
   * @param kind name of the writes that fail together, one of a small constant set
   */
  async track<T>(kind: string, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      this.#noteWrite(kind);
      return result;
    } catch (error) {
      if (isDatabaseUnavailable(error) || isDatabaseRejecting(error)) this.#noteFailure(kind, error);
      throw error;
    }
  }

  #noteWrite(kind: string): void {
    this.#writtenAtMs = this.#nowMs();
    this.#failing.delete(kind);
    this.#failing.delete(PROBE_KIND);
    this.#hasTracked = true;
  }

  #noteFailure(kind: string, error: unknown): void {
    const sinceMs = this.#failing.get(kind)?.sinceMs ?? this.#writtenAtMs;
    this.#failing.set(kind, { sinceMs, lastFailureMs: this.#nowMs(), error });
    this.#hasTracked = true;
  }

  /** Writes a row if nothing was tracked since the last check, and updates the state. */
  async check(): Promise<void> {
    const { write, onChange } = this.#options;
    if (!this.#hasTracked) await this.track(PROBE_KIND, write).catch(() => undefined);
    this.#hasTracked = false;
    const failing = this.#findLongFailing();
    const state = failing === undefined ? 'writable' : await this.#readFaultState();
    if (state === this.#state) return;
    this.#state = state;
    onChange?.(state, failing?.error ?? null);
  }

  /** Returns a kind whose failures span 30 s. Drops kinds whose last failure is out of date. */
  #findLongFailing(): FailingKind | undefined {
    const nowMs = this.#nowMs();
    for (const [kind, { lastFailureMs }] of this.#failing)
      if (nowMs - lastFailureMs > FAILURE_MAX_AGE_MS) this.#failing.delete(kind);
    return [...this.#failing.values()].find(
      ({ sinceMs, lastFailureMs }) => lastFailureMs - sinceMs >= UNWRITTEN_MAX_MS,
    );
  }

  async #readFaultState(): Promise<RecordState> {
    const { writeOnNewConnection } = this.#options;
    if (writeOnNewConnection === undefined) return 'unwritable';
    return await writeOnNewConnection().then(
      () => 'process_fault',
      () => 'unwritable',
    );
  }
}
