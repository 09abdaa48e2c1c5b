// A job runner with an OpenTelemetry SDK: publishes the event of its argument within a span.

import { createEventPublisher } from '@runhook/publisher';
import { openTraces } from '@runhook/runtime';

const [event] = process.argv.slice(2);
const traces = await openTraces('job-runner', console);
const publisher = createEventPublisher({ queueUrl: process.env.QUEUE_URL, traces: true });
await traces.withSpan('job', {}, () => publisher.publish(JSON.parse(event)));
await publisher.close();
await traces.close();
process.exit(0);
