export type Verdict = 'ok' | 'warning' | 'failed' | 'skipped';

/** One line of what the doctor says. */
export interface Finding {
  /** What was looked at, in a word or two. */
  check: string;
  verdict: Verdict;
  /** What was found; no password, token or key in it. */
  says: string;
  /** What to do about it; null when nothing is to be done. */
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
/** @param todo what would let it be looked at */
export const skipped = (check: string, says: string, todo: string | null = null): Finding => ({
  check,
  verdict: 'skipped',
  says,
  todo,
});

/** A system's or a driver's word for what went wrong, and nothing that may hold a password. */
export function reasonOf(error: unknown): string {
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] };
  if (cause !== undefined) return reasonOf(cause);
  // Of several addresses of a name.
  if (errors?.[0] !== undefined) return reasonOf(errors[0]);
  if (typeof code === 'string' && code !== '') return code;
  return error instanceof Error ? error.message.slice(0, 120) : 'unknown';
}

const WORDS: Readonly<Record<Verdict, string>> = {
  ok: 'ok     ',
  warning: 'WARNING',
  failed: 'FAILED ',
  skipped: 'skipped',
};

/** A line for each, with another for what to do. */
export function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, verdict, says, todo }) => [
    `${WORDS[verdict]}  ${check.padEnd(width)}  ${says}`,
    ...(todo === null ? [] : [`${' '.repeat(width + 11)}→ ${todo}`]),
  ]);
  const count = (wanted: Verdict) => findings.filter(({ verdict }) => verdict === wanted).length;
  const sum = `${count('failed')} failed, ${count('warning')} warnings, ${count('ok')} ok, ${count('skipped')} skipped`;
  return [...lines, '', sum].join('\n');
}

const CLOCK_WARNING_MS = 1_000;
const CLOCK_FAILED_MS = 60_000;

/** @param theirsMs read between `beforeMs` and now, by this machine's clock, which is as wrong as it takes to answer */
export function clockFinding(check: string, theirsMs: number, beforeMs: number, nowMs: number): Finding {
  const aheadMs = nowMs < theirsMs ? theirsMs - nowMs : theirsMs < beforeMs ? theirsMs - beforeMs : 0;
  const apart = Math.abs(aheadMs);
  if (apart < CLOCK_WARNING_MS) return ok(check, 'agrees with the clock here');
  const says = `is ${(apart / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock here`;
  const todo =
    'Let both machines follow the same time (NTP): signatures carry the time, retries and day partitions go by it.';
  return apart < CLOCK_FAILED_MS ? warning(check, says, todo) : failed(check, says, todo);
}
