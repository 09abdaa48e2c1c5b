export type Verdict = 'ok' | 'warning' | 'failed' | 'skipped';

/** The result of one check, shown as one line. */
export interface Finding {
  /** Name of the check, in one or two words. */
  check: string;
  verdict: Verdict;
  /** The observed state; must not contain a password, token or key. */
  says: string;
  /** The recommended action; null if none is needed. */
  todo: string | null;
}

export const ok = (check: string, says: string): Finding => ({ check, verdict: 'ok', says, todo: null });
export const warning = (check: string, says: string, todo: string): Finding => ({
  check,
  verdict: 'warning',
  says,
  todo,
});
export const failed = (check: string, says: string, todo: string): Finding => ({
  check,
  verdict: 'failed',
  says,
  todo,
});
/** @param todo explains how to enable the check */
export const skipped = (check: string, says: string, todo: string | null = null): Finding => ({
  check,
  verdict: 'skipped',
  says,
  todo,
});

/** Returns the error code of the system or driver; never text that may contain a password. */
export function reasonOf(error: unknown): string {
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] };
  if (cause !== undefined) return reasonOf(cause);
  // The errors of several addresses of a name.
  if (errors?.[0] !== undefined) return reasonOf(errors[0]);
  if (typeof code === 'string' && code !== '') return code;
  return error instanceof Error ? error.message.slice(0, 120) : 'unknown';
}

const VERDICT_LABELS: Readonly<Record<Verdict, string>> = {
  ok: 'ok     ',
  warning: 'WARNING',
  failed: 'FAILED ',
  skipped: 'skipped',
};

/** Formats each finding as a line, with a second line for the recommended action. */
export function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, verdict, says, todo }) => [
    `${VERDICT_LABELS[verdict]}  ${check.padEnd(width)}  ${says}`,
    ...(todo === null ? [] : [`${' '.repeat(width + 11)}→ ${todo}`]),
  ]);
  const count = (target: Verdict) => findings.filter(({ verdict }) => verdict === target).length;
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
  const says = `is ${(differenceMs / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of this machine`;
  const todo =
    'Synchronize both machines with NTP: signatures, retries and day partitions depend on the time.';
  return differenceMs < CLOCK_FAILED_MS ? warning(check, says, todo) : failed(check, says, todo);
}
