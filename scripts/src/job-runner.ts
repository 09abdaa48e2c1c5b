import { join } from 'node:path';
import { type Child, spawnChild } from './child.ts';
import { outsidersEnvironment } from './child-environment.ts';
import type { DemoRun } from './demonstration.ts';
import type { Home } from './home.ts';
import { writeJobFile } from './job-files.ts';
import type { RunningRecord } from './running-record.ts';

const PROGRAM = 'examples/job-runner/dist/main.js';
const STOP_GRACE_MS = 5_000;

/** Runs `examples/job-runner`, one run at a time. */
export interface JobRunner {
  /** Gives the exit code. */
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
        env: { ...outsidersEnvironment(process.env), QUEUE_URL: queueUrl() },
        logFile: join(home.logs, 'job-runner.log'),
        record,
        stopGraceMs: STOP_GRACE_MS,
      });
      return await child.exitCode;
    },
    stop: async () => child?.stop(),
  };
}
