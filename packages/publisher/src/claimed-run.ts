import type { ReportedRunStep } from '@runhook/contract';
import { type RunnerApi, RunnerApiError } from './runner-api.ts';

/** Data of a claim; see `ClaimResponse` of the management service. */
export interface Claim {
  run: {
    id: number;
    job_id: number;
    job_name: string;
    project_id: number;
    project_name: string;
    environment_id: number;
    environment_name: string;
    status: number;
    trigger: Record<string, unknown>;
  };
  execute_steps: string[];
  lease_token: string;
  attempt: number;
}

export interface RunResult {
  status: 'success' | 'errored' | 'cancelled';
  statusMessage?: string;
  /** Steps that were not reported before, or that have changed since. */
  steps?: readonly ReportedRunStep[];
}

/** A run that this runner has claimed. */
export interface ClaimedRun {
  id: number;
  job: { id: number; name: string };
  project: { id: number; name: string };
  environment: { id: number; name: string };
  /** Options of the trigger; those that are not set are null. */
  trigger: Readonly<Record<string, unknown>>;
  /** Commands of the trigger or the job; may be empty. */
  executeSteps: readonly string[];
  /** Number of claims of the run: more than 1 if another runner has lost it. */
  attempt: number;
  /** Aborted when the run was cancelled, or another runner has got it: the execution must end. */
  signal: AbortSignal;
  /** Must be called before the other reports; sends `job.run.started` unless another runner has started the run. */
  start(start: { engineVersion: string; startedAt?: Date }): Promise<void>;
  /** Reports steps while the run is in progress. */
  reportSteps(steps: readonly ReportedRunStep[]): Promise<void>;
  /**
   * Stores a file of the run, before `finish`, so that it is there when the end of the run is known. Throws a TypeError for
   * a path with an empty segment, `.` or `..`.
   */
  uploadArtifact(path: string, content: Uint8Array): Promise<void>;
}

/** Seconds of a heartbeat, which ends at once when the run is cancelled. Three fit into a lease of a minute. */
const HEARTBEAT_SECONDS = 20;
/** Lowest number of a status of a run that has ended. */
const ENDED_MIN = 10;
const STARTING = 2;
const CANCELLED = 30;
/** Version of the engine of a run whose execution failed before it was known. */
const UNKNOWN_ENGINE = 'unknown';
const CONFLICT = 409;

/** Executes a claimed run and reports its end. Resolves when the run has ended, also after an error of `execute`. */
export async function executeClaimed(
  api: RunnerApi,
  claim: Claim,
  execute: (run: ClaimedRun) => Promise<RunResult>,
): Promise<void> {
  const lost = new AbortController();
  const ended = new AbortController();
  const path = `/runs/${claim.run.id}`;
  const leaseToken = claim.lease_token;
  const heartbeats = sendHeartbeats(api, claim, { lost, signal: ended.signal });
  try {
    const run = claimedRun(api, claim, lost.signal);
    let isStarted = claim.run.status > STARTING;
    const start: ClaimedRun['start'] = async (options) => {
      await run.start(options);
      isStarted = true;
    };
    const result = await execute({ ...run, start }).catch((error: Error): RunResult => {
      if (error instanceof RunnerApiError && error.isLeaseLost) lost.abort(error);
      return { status: 'errored', statusMessage: error.message };
    });
    // A cancel is no error of the runner; the loss of its lease may be one.
    if (lost.signal.reason instanceof RunnerApiError) throw lost.signal.reason;
    if (lost.signal.aborted) return;
    // A run that has not started cannot end, and would be executed again and again.
    if (!isStarted) await run.start({ engineVersion: UNKNOWN_ENGINE });
    const rejection = await finish(api, claim, result);
    if (result.status !== 'cancelled') await api.call(`${path}/artifacts/`, { leaseToken });
    if (rejection !== null) throw rejection;
  } finally {
    ended.abort();
    await heartbeats;
  }
}

/**
 * Reports the end of a run. If the service rejects the result, reports one that it accepts, and returns the error:
 * otherwise the run would be executed again and again.
 */
async function finish(
  api: RunnerApi,
  { run, lease_token: leaseToken }: Claim,
  { status, statusMessage, steps }: RunResult,
): Promise<RunnerApiError | null> {
  const report = (body: object) => api.call(`/runs/${run.id}/finish/`, { body, leaseToken });
  const end = { status, ...(statusMessage !== undefined && { status_message: statusMessage }) };
  const hasSteps = steps !== undefined && steps.length > 0;
  try {
    await report({ ...end, ...(hasSteps && { run_steps: steps }) });
    return null;
  } catch (error) {
    if (!(error instanceof RunnerApiError) || error.isTemporary || error.isLeaseLost) throw error;
    const isOverQuota = error.status === CONFLICT && hasSteps;
    await report(isOverQuota ? end : { status: 'errored', status_message: error.message });
    return error;
  }
}

/** Renews the lease until the run ends. Never rejects. */
async function sendHeartbeats(
  api: RunnerApi,
  { run, lease_token: leaseToken }: Claim,
  { lost, signal }: { lost: AbortController; signal: AbortSignal },
): Promise<void> {
  const body = { wait: HEARTBEAT_SECONDS };
  while (!signal.aborted && !lost.signal.aborted) {
    try {
      const call = { body, leaseToken, signal, triesMax: Number.POSITIVE_INFINITY };
      const { run: current } = await api.call<Pick<Claim, 'run'>>(`/runs/${run.id}/heartbeat/`, call);
      if (current.status === CANCELLED) lost.abort(new Error('The run was cancelled.'));
      else if (current.status >= ENDED_MIN) return;
    } catch (error) {
      if (!signal.aborted) lost.abort(error);
    }
  }
}

function claimedRun(
  api: RunnerApi,
  { run, lease_token: leaseToken, ...claim }: Claim,
  signal: AbortSignal,
): ClaimedRun {
  const path = `/runs/${run.id}`;
  return {
    id: run.id,
    job: { id: run.job_id, name: run.job_name },
    project: { id: run.project_id, name: run.project_name },
    environment: { id: run.environment_id, name: run.environment_name },
    trigger: run.trigger,
    executeSteps: claim.execute_steps,
    attempt: claim.attempt,
    signal,
    async start({ engineVersion, startedAt = new Date() }) {
      const body = { engine_version: engineVersion, started_at: startedAt.toISOString() };
      await api.call(`${path}/start/`, { body, leaseToken });
    },
    async reportSteps(steps) {
      await api.call(`${path}/steps/`, { body: { run_steps: steps }, leaseToken });
    },
    async uploadArtifact(artifactPath, content) {
      await api.call(`${path}/artifacts/${encodedPath(artifactPath)}`, {
        method: 'PUT',
        body: content,
        leaseToken,
      });
    },
  };
}

function encodedPath(artifactPath: string): string {
  const segments = artifactPath.split('/');
  // A URL resolves these: the call would go to another endpoint.
  if (segments.some((segment) => ['', '.', '..'].includes(segment)))
    throw new TypeError('The path of an artifact must have no empty segments, "." and "..".');
  return segments.map(encodeURIComponent).join('/');
}
