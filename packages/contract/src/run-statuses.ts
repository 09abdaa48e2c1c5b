// Uses no Node.js API and imports no other file, so that the console can import it.

/**
 * The statuses of runs: the word on record, the number of the API and the word for people, in the order of a run's life
 * (docs/contract.md#runs-and-jobs). A payload has those of `RUN_STATUS_CODES` only, with the same numbers.
 */
export const RUN_STATUSES = {
  Queued: { code: 1, humanized: 'Queued' },
  Starting: { code: 2, humanized: 'Starting' },
  Running: { code: 3, humanized: 'Running' },
  Success: { code: 10, humanized: 'Success' },
  Errored: { code: 20, humanized: 'Error' },
  Canceled: { code: 30, humanized: 'Cancelled' },
} as const;

/** A status as the record stores it. */
export type StoredRunStatus = keyof typeof RUN_STATUSES;

export type RunStatusCode = (typeof RUN_STATUSES)[StoredRunStatus]['code'];

export const STORED_RUN_STATUSES = Object.keys(RUN_STATUSES) as StoredRunStatus[];

export function isStoredRunStatus(value: unknown): value is StoredRunStatus {
  return typeof value === 'string' && Object.hasOwn(RUN_STATUSES, value);
}

/** Whether a run in this status has ended. */
export function isFinalRunStatus(status: StoredRunStatus): boolean {
  return RUN_STATUSES[status].code >= RUN_STATUSES.Success.code;
}

/** Returns the status of a number of the API; null for another number. */
export function runStatusOfCode(code: RunStatusCode): StoredRunStatus;
export function runStatusOfCode(code: number): StoredRunStatus | null;
export function runStatusOfCode(code: number): StoredRunStatus | null {
  return STORED_RUN_STATUSES.find((status) => RUN_STATUSES[status].code === code) ?? null;
}

/** Returns the status of a text: its number in digits, or one of its words in any case; null for another text. */
export function runStatusOfText(text: string): StoredRunStatus | null {
  const word = text.toLowerCase();
  return (
    STORED_RUN_STATUSES.find((status) => {
      const { code, humanized } = RUN_STATUSES[status];
      return [String(code), status.toLowerCase(), humanized.toLowerCase()].includes(word);
    }) ?? null
  );
}
