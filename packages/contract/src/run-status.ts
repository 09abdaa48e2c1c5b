/**
 * Run statuses as payloads name them, with their codes (spec, section 2.3). `Canceled` is recorded and never
 * sent, so its code appears in the runs API only.
 */
export const RUN_STATUS_CODES = { Running: 3, Success: 10, Errored: 20, Canceled: 30 } as const;

export type RunStatus = keyof typeof RUN_STATUS_CODES;
