#!/usr/bin/env node
import { createEventPublisher } from '@runhook/publisher';
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

// The job does not wait for the queue: a run must not fail because nobody can be told of it.
const started = report(publisher, startedEvent(run));
const { exitCode, failure, wasStopped } = await runCommand(args.command);
const endedAt = new Date();

const reported = [await started];
// A run that was stopped from outside is neither a success nor an error: nothing is sent for it.
if (!wasStopped) {
  if (failure !== null) reported.push(await report(publisher, erroredEvent(run, endedAt, failure)));
  // A runner that stores logs or artifacts does it here, before it says that they are there.
  reported.push(await report(publisher, completedEvent(run, endedAt, failure)));
}
await publisher.close();
process.exitCode = exitCode === 0 && reported.includes(false) ? 1 : exitCode;
