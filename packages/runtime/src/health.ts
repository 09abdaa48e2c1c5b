import type { Logger } from 'pino';
import { DeadlineError, withinDeadline } from './deadline.ts';

/** `live`: the process must be restarted when it fails. `ready`: it must get no traffic for now. */
export type HealthKind = 'live' | 'ready';

export interface HealthReport {
  ok: boolean;
  /** By name of the check. `error` is a word or a code for an operator; the error itself is in the log. */
  checks: Record<string, { ok: boolean; error?: string }>;
}

export interface Health {
  /** The check passes by returning or resolving, and fails by throwing, rejecting or not ending within `timeoutMs`. */
  register(name: string, kind: HealthKind, check: () => Promise<void> | void): void;
  report(kind: HealthKind): Promise<HealthReport>;
}

export interface HealthOptions {
  /** While it is stopping, `ready` is red. */
  lifecycle?: { readonly stopping: boolean };
  /** Told when a check starts to fail and when it passes again. */
  logger?: Pick<Logger, 'info' | 'warn'>;
  /** For each check; default 2,000. */
  timeoutMs?: number;
}

interface Check {
  name: string;
  kind: HealthKind;
  run: () => Promise<void> | void;
  /** The run under way: a check that hangs is joined by the next report, not started again beside itself. */
  underway: Promise<void> | null;
  failing: boolean;
}

/** The checks of a process, run side by side whenever somebody asks. */
export function createHealth({ lifecycle, logger, timeoutMs = 2_000 }: HealthOptions = {}): Health {
  const checks: Check[] = [];

  async function outcomeOf(check: Check): Promise<{ ok: boolean; error?: string }> {
    try {
      await withinDeadline(timeoutMs, () => joinRun(check));
      if (check.failing) logger?.info({ check: check.name }, 'health check passes again');
      check.failing = false;
      return { ok: true };
    } catch (err) {
      if (!check.failing) logger?.warn({ err, check: check.name }, 'health check fails');
      check.failing = true;
      return { ok: false, error: describe(err) };
    }
  }

  return {
    register(name, kind, check) {
      checks.push({ name, kind, run: check, underway: null, failing: false });
    },

    async report(kind) {
      const asked = checks.filter((check) => check.kind === kind);
      const outcomes = await Promise.all(asked.map(outcomeOf));
      const report: HealthReport = { ok: true, checks: {} };
      for (const [index, check] of asked.entries())
        report.checks[check.name] = outcomes[index] ?? { ok: false };
      // Asked after the checks, which take time in which a stop may begin.
      if (kind === 'ready' && lifecycle?.stopping) report.checks.lifecycle = { ok: false, error: 'stopping' };
      report.ok = Object.values(report.checks).every(({ ok }) => ok);
      return report;
    },
  };
}

function joinRun(check: Check): Promise<void> {
  check.underway ??= (async () => check.run())().finally(() => {
    check.underway = null;
  });
  return check.underway;
}

/** Probes are open to whoever reaches the port: hosts, users and SQL that stand in messages stay in the log. */
function describe(error: unknown): string {
  if (error instanceof DeadlineError) return 'timed out';
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'failed';
}
