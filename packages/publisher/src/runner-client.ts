import { setTimeout as wait } from 'node:timers/promises';
import { createQueueBackend, createRunRequestWorker } from '@runhook/queue';
import { type Claim, type ClaimedRun, executeClaimed, type RunResult } from './claimed-run.ts';
import { RunnerApi, type RunnerApiOptions } from './runner-api.ts';

export interface RunnerClientOptions extends RunnerApiOptions {
  /**
   * The `QUEUE_URL` of the service: runs are taken from its queue `job-run-requests`. Without it the runner waits for
   * them over REST. Runners of both kinds may serve an account: the service decides which gets a run.
   */
  queueUrl?: string | undefined;
  /** Takes only runs of these jobs, over REST up to 100; all when omitted. */
  jobIds?: readonly number[];
  /** Name of the runner, for people. */
  name?: string;
  /** Maximum number of runs at a time; 1 when omitted. */
  concurrency?: number;
  /** Called for errors after which the runner continues. */
  onError?: (error: Error) => void;
}

/** A runner that executes triggered runs. */
export interface RunnerClient {
  /** Takes no further runs, and resolves when those in progress have ended. */
  close(): Promise<void>;
}

/** Seconds that one claim waits for a run. */
const CLAIM_WAIT_SECONDS = 25;
const ERROR_WAIT_MS = 1_000;

/**
 * Starts a runner: claims triggered runs of the account, keeps their leases, and reports how each ended
 * (docs/contract.md#triggered-runs). If `execute` throws, the run ends as errored with the message of the error. A run
 * that was cancelled, or whose lease another runner has got, aborts `signal`, and its result is ignored.
 */
export function createRunnerClient(
  options: RunnerClientOptions,
  execute: (run: ClaimedRun) => Promise<RunResult>,
): RunnerClient {
  const { accountId, jobIds, name, concurrency = 1, onError = () => undefined, queueUrl } = options;
  const api = new RunnerApi(options);
  const closing = new AbortController();
  const runner = name === undefined ? {} : { runner: name };

  async function runClaimed(claim: Claim): Promise<void> {
    await executeClaimed(api, claim, execute).catch(onError);
  }

  if (queueUrl !== undefined) {
    const worker = createRunRequestWorker(
      createQueueBackend(queueUrl),
      async (request) => {
        if (request.accountId !== accountId || jobIds?.includes(request.jobId) === false) return false;
        const body = { run_id: request.runId, ...runner };
        const claim = await api.call<Claim | null>('/runs/claim/', { body, hasKey: true });
        // A run that was cancelled, or that another runner has, needs no job.
        if (claim !== null) await runClaimed(claim);
        return true;
      },
      concurrency,
    );
    worker.on('error', onError);
    worker.on('failed', (_job, error) => onError(error));
    return { close: () => worker.close() };
  }

  async function claimRuns(): Promise<void> {
    const body = { wait: CLAIM_WAIT_SECONDS, ...(jobIds !== undefined && { job_ids: jobIds }), ...runner };
    while (!closing.signal.aborted) {
      try {
        const call = { body, hasKey: true, signal: closing.signal, triesMax: 3 };
        const claim = await api.call<Claim | null>('/runs/claim/', call);
        if (claim !== null) await runClaimed(claim);
      } catch (error) {
        if (closing.signal.aborted) return;
        onError(error as Error);
        await wait(ERROR_WAIT_MS, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  }

  const loops = Promise.all(Array.from({ length: concurrency }, claimRuns));
  return {
    async close() {
      closing.abort();
      await loops;
    },
  };
}
