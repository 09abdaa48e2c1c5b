import { truncateText, wellFormedText } from '@runhook/contract';

/** Result of a model, test, seed or snapshot, as `run_results.json` has it. */
export interface ModelResult {
  /** `model.<package>.<name>` */
  unique_id: string;
  /** The part of `unique_id` after the package. */
  name: string;
  /** The first part of `unique_id`. */
  resource_type: string;
  status: string;
  /** Seconds. */
  execution_time: number | null;
  message: string | null;
  thread_id: string | null;
}

/** Limits of what is stored of one file. Texts are truncated; later models and larger entries are left out. */
export const MODEL_LIMITS = {
  modelsMax: 10_000,
  entryBytesMax: 1024 * 1024,
  /** Sum of the lengths of all texts. */
  textMax: 8 * 1024 * 1024,
  idCharactersMax: 1_000,
  statusCharactersMax: 100,
  messageCharactersMax: 2_000,
} as const;

const CODES = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  openObject: 0x7b,
  closeObject: 0x7d,
};
const RESULTS_KEY = '"results"';

/**
 * Finds the models in a `run_results.json` that arrives in chunks: the objects in the array `results` of the top level.
 * Only one entry at a time is in memory and parsed, because parsing a file of 64 MB would take hundreds of megabytes and
 * block the process for seconds. The rest of the document is scanned for brackets and strings only.
 */
export class ModelScanner {
  readonly #models: ModelResult[] = [];
  #textLength = 0;
  #isInvalid = false;
  #hasResults = false;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Whether the scan is inside of the array `results`. */
  #isInResults = false;
  /** The last string of the top level, with its quotes, while it may be the key `results`. */
  #key = '';
  #isKeyOfResults = false;
  /** Bytes of the current entry; null outside of entries and in one that is too large. */
  #entry: { chunks: Uint8Array[]; length: number } | null = null;

  push(chunk: Uint8Array): void {
    let entryStart = 0;
    for (let index = 0; index < chunk.length && !this.#isInvalid; index += 1) {
      const code = chunk[index] as number;
      if (this.#isInString) this.#readInString(code);
      else if (code === CODES.quote) this.#startString();
      else if (code === CODES.openObject || code === CODES.openArray) {
        if (this.#open(code)) entryStart = index;
      } else if (code === CODES.closeObject || code === CODES.closeArray) {
        if (this.#close()) this.#endEntry(chunk.subarray(entryStart, index + 1));
      } else if (this.#depth === 1) this.#readBetweenStrings(code);
    }
    if (this.#entry) this.#addToEntry(chunk.subarray(entryStart));
  }

  /** Returns the models in the order of the file, or null if it is not JSON with an array `results`. */
  end(): ModelResult[] | null {
    return this.#isInvalid || !this.#hasResults || this.#depth !== 0 ? null : this.#models;
  }

  #readInString(code: number): void {
    if (this.#depth === 1 && this.#key.length < RESULTS_KEY.length) this.#key += String.fromCharCode(code);
    if (this.#isEscaped) this.#isEscaped = false;
    else if (code === CODES.backslash) this.#isEscaped = true;
    else if (code === CODES.quote) this.#isInString = false;
  }

  #startString(): void {
    if (this.#depth === 0) this.#isInvalid = true;
    this.#isInString = true;
    if (this.#depth === 1) this.#key = '"';
  }

  #readBetweenStrings(code: number): void {
    if (code === CODES.colon) this.#isKeyOfResults = this.#key === RESULTS_KEY;
    else if (code === CODES.comma) this.#isKeyOfResults = false;
  }

  /** Returns true if an entry begins. */
  #open(code: number): boolean {
    this.#depth += 1;
    if (this.#depth === 1 && code !== CODES.openObject) this.#isInvalid = true;
    if (this.#depth === 2 && code === CODES.openArray && this.#isKeyOfResults) {
      this.#isInResults = true;
      this.#hasResults = true;
    }
    if (this.#depth !== 3 || !this.#isInResults || code !== CODES.openObject) return false;
    this.#entry = { chunks: [], length: 0 };
    return true;
  }

  /** Returns true if an entry ends. */
  #close(): boolean {
    this.#depth -= 1;
    if (this.#depth < 0) this.#isInvalid = true;
    if (this.#depth === 1) this.#isInResults = false;
    return this.#depth === 2 && this.#entry !== null;
  }

  #addToEntry(bytes: Uint8Array): void {
    if (!this.#entry) return;
    this.#entry.length += bytes.length;
    // A copy, since the chunk may be part of a large buffer that would stay in memory.
    if (this.#entry.length <= MODEL_LIMITS.entryBytesMax) this.#entry.chunks.push(Uint8Array.from(bytes));
    else this.#entry = null;
  }

  #endEntry(bytes: Uint8Array): void {
    this.#addToEntry(bytes);
    const entry = this.#entry;
    this.#entry = null;
    if (entry === null || this.#models.length >= MODEL_LIMITS.modelsMax) return;
    try {
      this.#addModel(JSON.parse(Buffer.concat(entry.chunks).toString()));
    } catch {
      this.#isInvalid = true;
    }
  }

  #addModel(entry: unknown): void {
    const model = toModel(entry as Record<string, unknown>);
    if (model === null) return;
    for (const value of Object.values(model)) if (typeof value === 'string') this.#textLength += value.length;
    if (this.#textLength <= MODEL_LIMITS.textMax) this.#models.push(model);
  }
}

/** Returns null for an entry that does not name a model and its status. */
function toModel(entry: Record<string, unknown>): ModelResult | null {
  const { idCharactersMax, statusCharactersMax, messageCharactersMax } = MODEL_LIMITS;
  const unique_id = textOf(entry.unique_id, idCharactersMax);
  const status = textOf(entry.status, statusCharactersMax);
  if (!unique_id || !status) return null;
  const [resource_type = '', , ...rest] = unique_id.split('.');
  return {
    unique_id,
    name: rest.join('.') || unique_id,
    resource_type,
    status,
    execution_time: Number.isFinite(entry.execution_time) ? (entry.execution_time as number) : null,
    message: textOf(entry.message, messageCharactersMax),
    thread_id: textOf(entry.thread_id, statusCharactersMax),
  };
}

function textOf(value: unknown, charactersMax: number): string | null {
  return typeof value === 'string' ? wellFormedText(truncateText(value, charactersMax)) : null;
}
