export type FindingStatus = 'ok' | 'warning' | 'failed' | 'skipped';

/** The result of one check, shown as a line, and its remedy as a second one. */
export interface Finding {
  /** Name of the check, in one or two words. */
  check: string;
  status: FindingStatus;
  /** The observed state; must not contain a password, token or key. */
  message: string;
  /** The recommended action; null if none is needed. */
  remedy: string | null;
}

export const ok = (check: string, message: string): Finding => ({
  check,
  status: 'ok',
  message,
  remedy: null,
});
export const warning = (check: string, message: string, remedy: string): Finding => ({
  check,
  status: 'warning',
  message,
  remedy,
});
export const failed = (check: string, message: string, remedy: string): Finding => ({
  check,
  status: 'failed',
  message,
  remedy,
});
/** @param remedy explains how to enable the check */
export const skipped = (check: string, message: string, remedy: string | null = null): Finding => ({
  check,
  status: 'skipped',
  message,
  remedy,
});

/** Returns the error code of the system or driver; without one, the beginning of the message. */
export function reasonOf(error: unknown): string {
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] };
  if (cause !== undefined) return reasonOf(cause);
  // The errors of several addresses of a name.
  if (errors?.[0] !== undefined) return reasonOf(errors[0]);
  if (typeof code === 'string' && code !== '') return code;
  return error instanceof Error ? error.message.slice(0, 120) : 'unknown';
}

const STATUS_LABELS: Readonly<Record<FindingStatus, string>> = {
  ok: 'ok     ',
  warning: 'WARNING',
  failed: 'FAILED ',
  skipped: 'skipped',
};

/** Formats each finding as a line, with a second line for the recommended action. */
export function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, status, message, remedy }) => [
    `${STATUS_LABELS[status]}  ${check.padEnd(width)}  ${message}`,
    ...(remedy === null ? [] : [`${' '.repeat(width + 11)}→ ${remedy}`]),
  ]);
  const count = (target: FindingStatus) => findings.filter(({ status }) => status === target).length;
  const summary = `${count('failed')} failed, ${count('warning')} warnings, ${count('ok')} ok, ${count('skipped')} skipped`;
  return [...lines, '', summary].join('\n');
}

const CLOCK_WARNING_MS = 1_000;
const CLOCK_FAILED_MS = 60_000;

/**
 * @param serverMs read between `beforeMs` and `nowMs` of this machine's clock, so differences within that interval do
 * not count
 */
export function clockFinding(check: string, serverMs: number, beforeMs: number, nowMs: number): Finding {
  const aheadMs = nowMs < serverMs ? serverMs - nowMs : serverMs < beforeMs ? serverMs - beforeMs : 0;
  const differenceMs = Math.abs(aheadMs);
  if (differenceMs < CLOCK_WARNING_MS) return ok(check, 'agrees with the clock of this machine');
  const message = `is ${(differenceMs / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of this machine`;
  const remedy =
    'Synchronize both machines with NTP: signatures, retries and day partitions depend on the time.';
  return differenceMs < CLOCK_FAILED_MS ? warning(check, message, remedy) : failed(check, message, remedy);
}
