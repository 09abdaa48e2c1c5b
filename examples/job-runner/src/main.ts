#!/usr/bin/env node
import { createRunnerClient } from '@runhook/publisher';
import { executeRun } from './execute.ts';
import { readJobs } from './jobs.ts';

const USAGE = `usage: RUNHOOK_URL=… RUNHOOK_TOKEN=… [QUEUE_URL=…] job-runner <jobs file>

Executes the triggered runs of an account with the commands that the file lists for each job. Takes runs from the queue of
QUEUE_URL, or without it over REST.
`;

const [file, ...others] = process.argv.slice(2);
const { RUNHOOK_URL: url, RUNHOOK_TOKEN: token, QUEUE_URL: queueUrl } = process.env;
if (file === undefined || others.length > 0 || !url || !token) {
  process.stderr.write(USAGE);
  process.exit(2);
}

const jobs = await readJobs(file);
const runner = createRunnerClient(
  {
    url,
    token,
    accountId: jobs.accountId,
    jobIds: Object.keys(jobs.jobs).map(Number),
    name: 'example-job-runner',
    ...(queueUrl && { queueUrl }),
    onError: (error) => process.stderr.write(`${error.message}\n`),
  },
  (run) => executeRun(jobs, run),
);

// The first signal lets the run in progress end; a second one ends the process, and another runner gets the run.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void runner.close());
}
