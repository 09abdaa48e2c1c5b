import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { JobView } from '@runhook/database';
import type { Api } from './api.ts';
import { type Child, externalEnvironment, spawnChild } from './child.ts';
import {
  type ExpectedDelivery,
  findMissingArrivals,
  findMissingInLog,
  type LoggedDelivery,
  type ReceivedDelivery,
} from './deliveries.ts';
import type { Home } from './home.ts';
import type { RunningRecord } from './running-record.ts';
import type { Terminal } from './terminal.ts';

const POLL_MS = 100;

/** Status of a run that succeeded; those of other runs that have ended are larger. */
const SUCCESS = 10;

/** The part of a run of the API that the demonstration reads. */
interface ApiRun {
  id: number;
  status: number;
  status_humanized: string;
}

/** A run of the demonstration. */
export interface DemoRun {
  job: JobView;
  /** Script for `node -e`. */
  script: string;
  shouldSucceed: boolean;
}

/** A run that was triggered. */
interface TriggeredRun extends DemoRun {
  id: number;
}

export interface DemonstrationOptions {
  terminal: Terminal;
  runs: readonly DemoRun[];
  /** Rejections of the first run's `job.run.completed`. */
  rejections: number;
  jobRunner: JobRunner;
  api: Api;
  subscriptionId: string;
  deadlineMs: number;
  signal: AbortSignal;
}

/** Runs two jobs and waits for their deliveries. */
export interface Demonstration {
  /** Must be called for each delivery that the receiver gets. */
  observe(delivery: ReceivedDelivery): void;
  /** Resolves with a sentence for each problem; empty if the demonstration passed. */
  run(): Promise<string[]>;
  readonly isOver: boolean;
}

/** Returns a run that succeeds and one that fails. */
export function demoRuns([succeeding, failing]: readonly [JobView, JobView]): [DemoRun, DemoRun] {
  return [
    { job: succeeding, script: 'console.log("42 models built")', shouldSucceed: true },
    {
      job: failing,
      script: 'console.error("orders.csv: 3 rows have no customer"); process.exit(3)',
      shouldSucceed: false,
    },
  ];
}

export function createDemonstration(options: DemonstrationOptions): Demonstration {
  const { terminal, runs, jobRunner, api, subscriptionId, deadlineMs, signal } = options;
  const received: ReceivedDelivery[] = [];
  const triggered: TriggeredRun[] = [];
  let expected: ExpectedDelivery[] = [];
  let onReceived: () => void = () => undefined;
  let isOver = false;

  /** Triggers the runs one after another, and waits for the end of each. */
  async function runJobs(): Promise<string[]> {
    const problems: string[] = [];
    await jobRunner.start();
    for (const run of runs) {
      const { name } = run.job;
      const outcome = run.shouldSucceed ? 'succeeded' : 'failed, as expected';
      const { status } = await terminal.step(
        `running "${name}"`,
        () => rejectOnAbort(signal, triggerRun(run)),
        (ended) =>
          (ended.status === SUCCESS) === run.shouldSucceed
            ? `"${name}" ran and ${outcome}`
            : `"${name}" ended as ${ended.status_humanized}`,
      );
      if ((status === SUCCESS) !== run.shouldSucceed)
        problems.push(`the run of "${name}" ended with the status ${status}`);
    }
    await jobRunner.stop();
    expected = expectedDeliveries(triggered, options.rejections);
    return problems;
  }

  async function triggerRun(run: DemoRun): Promise<ApiRun> {
    const { id } = await api.post<ApiRun>(`/api/v2/jobs/${run.job.id}/run/`, {
      cause: 'Started by npm start',
    });
    triggered.push({ ...run, id });
    while (true) {
      const current = await api.get<ApiRun>(`/api/v2/runs/${id}/`);
      if (current.status >= SUCCESS) return current;
      await wait(POLL_MS, undefined, { signal });
    }
  }

  function waitForArrivals(deadline: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!deadline.aborted && findMissingArrivals(expected, received).length > 0) return;
        onReceived = () => undefined;
        resolve();
      };
      onReceived = check;
      deadline.addEventListener('abort', check);
      check();
    });
  }

  async function logProblems(): Promise<string[]> {
    const query = (run: TriggeredRun) =>
      `/subscription/${subscriptionId}/deliveries?run_id=${run.id}&limit=100`;
    const missingInLog = await Promise.all(triggered.map((run) => api.get<LoggedDelivery[]>(query(run))));
    return findMissingInLog(expected, missingInLog.flat());
  }

  /** Polls, because the log is written after the receiver has responded. */
  async function waitForLog(deadline: AbortSignal): Promise<string[]> {
    while (true) {
      const problems = await logProblems().catch((error: Error) => [error.message]);
      if (problems.length === 0 || deadline.aborted) return problems;
      await wait(POLL_MS);
    }
  }

  return {
    get isOver() {
      return isOver;
    },
    observe(delivery) {
      if (isOver) return;
      received.push(delivery);
      onReceived();
    },
    async run() {
      const runnerProblems = await runJobs();
      const deadline = new AbortController();
      const expire = () => deadline.abort();
      // AbortSignal.any() of an AbortSignal.timeout() is not used, because Node 20 may collect it before it fires.
      const timer = setTimeout(expire, deadlineMs);
      signal.addEventListener('abort', expire);
      await waitForArrivals(deadline.signal);
      const missingInLog = await waitForLog(deadline.signal);
      clearTimeout(timer);
      isOver = true;
      signal.throwIfAborted();
      return [...runnerProblems, ...findMissingArrivals(expected, received), ...missingInLog];
    },
  };
}

function expectedDeliveries(runs: readonly TriggeredRun[], rejections: number): ExpectedDelivery[] {
  return runs.flatMap(({ id, job, shouldSucceed }, index) => {
    const types = ['job.run.started', ...(shouldSucceed ? [] : ['job.run.errored']), 'job.run.completed'];
    return types.map((eventType) => ({
      runId: String(id),
      jobName: job.name,
      eventType,
      rejections: index === 0 && eventType === 'job.run.completed' ? rejections : 0,
    }));
  });
}

/** Rejects when the signal is aborted. The work continues; the lifecycle stops it. */
async function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

const PROGRAM = 'examples/job-runner/dist/main.js';
const STOP_GRACE_MS = 5_000;

/** `examples/job-runner`, which executes the runs that the demonstration triggers. */
export interface JobRunner {
  start(): Promise<void>;
  /** Resolves when the runner has reported the run that it executes. */
  stop(): Promise<void>;
}

export function createJobRunner(options: {
  checkout: string;
  home: Home;
  record: RunningRecord;
  runs: readonly DemoRun[];
  accountId: number;
  url: () => string;
  token: string;
}): JobRunner {
  const { checkout, home, record, runs, accountId, url, token } = options;
  let child: Child | null = null;
  return {
    async start() {
      child = await spawnChild({
        name: 'job-runner',
        args: [join(checkout, PROGRAM), writeJobsFile(home.jobs, accountId, runs)],
        cwd: checkout,
        env: { ...externalEnvironment(process.env), RUNHOOK_URL: url(), RUNHOOK_TOKEN: token },
        logFile: join(home.logs, 'job-runner.log'),
        record,
        stopGraceMs: STOP_GRACE_MS,
      });
    },
    stop: async () => child?.stop(),
  };
}

/** Writes the file of `examples/job-runner`, and returns its path. */
function writeJobsFile(folder: string, accountId: number, runs: readonly DemoRun[]): string {
  const file = join(folder, 'jobs.json');
  const jobs = runs.map(({ job, script }) => [job.id, { steps: [[process.execPath, '-e', script]] }]);
  writeFileSync(file, `${JSON.stringify({ accountId, jobs: Object.fromEntries(jobs) }, null, 2)}\n`);
  return file;
}
