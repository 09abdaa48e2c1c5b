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

/** A run of the demonstration. Its id is chosen before it starts, so that the receiver can be configured to reject it. */
export interface DemoRun {
  id: number;
  job: JobView;
  /** Script for `node -e`. */
  script: string;
  shouldSucceed: boolean;
}

export interface DemonstrationOptions {
  terminal: Terminal;
  runs: readonly DemoRun[];
  /** Rejections of the first run's `job.run.completed`. */
  rejections: number;
  /** Runs the job runner and resolves with its exit code. */
  runJob(run: DemoRun): Promise<number>;
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
export function demoRuns(
  [succeeding, failing]: readonly [JobView, JobView],
  firstRunId: number,
): [DemoRun, DemoRun] {
  return [
    { id: firstRunId, job: succeeding, script: 'console.log("42 models built")', shouldSucceed: true },
    {
      id: firstRunId + 1,
      job: failing,
      script: 'console.error("orders.csv: 3 rows have no customer"); process.exit(3)',
      shouldSucceed: false,
    },
  ];
}

export function createDemonstration(options: DemonstrationOptions): Demonstration {
  const { terminal, runs, runJob, api, subscriptionId, deadlineMs, signal } = options;
  const received: ReceivedDelivery[] = [];
  const expected = expectedDeliveries(runs, options.rejections);
  let onReceived: () => void = () => undefined;
  let isOver = false;

  async function runJobs(): Promise<string[]> {
    const problems: string[] = [];
    for (const run of runs) {
      const { name } = run.job;
      const outcome = run.shouldSucceed ? 'succeeded' : 'failed, as expected';
      const exitCode = await terminal.step(
        `running "${name}"`,
        () => rejectOnAbort(signal, runJob(run)),
        (code) =>
          (code === 0) === run.shouldSucceed
            ? `"${name}" ran and ${outcome}`
            : `"${name}" ended with ${code}`,
      );
      if ((exitCode === 0) !== run.shouldSucceed)
        problems.push(`the job runner ended with ${exitCode} for "${name}"`);
    }
    return problems;
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
    const query = (run: DemoRun) => `/subscription/${subscriptionId}/deliveries?run_id=${run.id}&limit=100`;
    const missingInLog = await Promise.all(runs.map((run) => api.get<LoggedDelivery[]>(query(run))));
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

function expectedDeliveries(runs: readonly DemoRun[], rejections: number): ExpectedDelivery[] {
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

/** Runs `examples/job-runner`, one run at a time. */
export interface JobRunner {
  /** Resolves with the exit code. */
  run(run: DemoRun): Promise<number>;
  stop(): Promise<void>;
}

export function createJobRunner(options: {
  checkout: string;
  home: Home;
  record: RunningRecord;
  queueUrl: () => string;
}): JobRunner {
  const { checkout, home, record, queueUrl } = options;
  let child: Child | null = null;
  return {
    async run({ id, job, script }) {
      const command = [process.execPath, '-e', script];
      const reason = ['--reason', 'Started by npm start'];
      const jobFile = writeJobFile(home.jobs, job);
      child = await spawnChild({
        name: 'job-runner',
        args: [join(checkout, PROGRAM), jobFile, '--run-id', String(id), ...reason, '--', ...command],
        cwd: checkout,
        env: { ...externalEnvironment(process.env), QUEUE_URL: queueUrl() },
        logFile: join(home.logs, 'job-runner.log'),
        record,
        stopGraceMs: STOP_GRACE_MS,
      });
      return await child.exitCode;
    },
    stop: async () => child?.stop(),
  };
}

/** Writes the job file of `examples/job-runner`, and returns its path. */
function writeJobFile(folder: string, job: JobView): string {
  const file = join(folder, `${job.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.json`);
  const content = {
    accountId: job.account_id,
    job: { id: job.id, name: job.name },
    project: { id: job.project_id, name: job.project_name },
    environment: { id: job.environment_id, name: job.environment_name },
    engineVersion: process.versions.node,
  };
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
  return file;
}
