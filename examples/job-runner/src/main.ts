#!/usr/bin/env node
import { commandStepName, createEventPublisher } from '@runhook/publisher';
import { readArguments, USAGE } from './arguments.ts';
import { completedEvent, erroredEvent, type Run, startedEvent } from './events.ts';
import { readJob } from './job.ts';
import { report } from './report.ts';
import { runCommand } from './run-command.ts';

const args = readArguments(process.argv.slice(2));
const queueUrl = process.env.QUEUE_URL;
if (args === null || !queueUrl) {
  process.stderr.write(`${USAGE}\n`);
  process.exit(2);
}

const job = await readJob(args.jobFile);
const run: Run = { id: args.runId, job, reason: args.reason, startedAt: new Date() };
const publisher = createEventPublisher({ queueUrl });

// Starts the job without waiting for the queue, because a run must not fail if the queue is unavailable.
const started = report(publisher, startedEvent(run));
const { exitCode, failure, log, wasStopped } = await runCommand(args.command);
const endedAt = new Date();

const reportResult = [await started];
// A run that was stopped from outside neither succeeded nor failed, so no event is sent.
if (!wasStopped) {
  const step = {
    index: 1,
    name: commandStepName(args.command),
    status: failure === null ? 'Success' : 'Error',
    started_at: run.startedAt.toISOString(),
    finished_at: endedAt.toISOString(),
    logs: log,
  };
  const options = { run_steps: [step] };
  if (failure !== null)
    reportResult.push(await report(publisher, erroredEvent(run, endedAt, failure), options));
  // A runner that stores artifacts must do so here, before it reports that they are available.
  reportResult.push(await report(publisher, completedEvent(run, endedAt, failure), options));
}
await publisher.close();
process.exitCode = exitCode === 0 && reportResult.includes(false) ? 1 : exitCode;
