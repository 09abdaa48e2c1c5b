import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  eventually,
  exampleEvent,
  oneQueueBackend,
  type QueueBackend,
  queueBackends,
  seedSubscription,
} from '@runhook/testing';
import type { RunningService } from '../services.ts';
import { type CollectedSpan, type OtlpCollector, startOtlpCollector } from './otlp-collector.ts';
import { callApi, openSystem, type System } from './system.ts';

const PUBLISHER = fileURLToPath(new URL('./publish-in-trace.mjs', import.meta.url));
const { version: VERSION } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string };
const EXPORT_SOON = { OTEL_BSP_SCHEDULE_DELAY: '100' };
const QUERY_SECRET = 'token=in-the-query';

// Each test runs on one queue; other-queue.long.test.ts exchanges the queues.
const [ofReports = { name: 'PostgreSQL' as const }] = oneQueueBackend();
const ofPublisher = queueBackends().find(({ name }) => name !== ofReports.name) ?? ofReports;

describe('traces', () => {
  let system: System;
  let collector: OtlpCollector;
  let traced: Record<string, string>;
  let management: RunningService;

  const open = async (backend: QueueBackend) => {
    collector = await startOtlpCollector();
    system = await openSystem(backend);
    system.onClose(() => collector.close());
    traced = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...EXPORT_SOON };
  };
  afterEach(() => system.close());

  const subscribe = () =>
    seedSubscription(system.database, {
      accountId: system.account.id,
      clientUrl: `${system.receiver.url}/hook/in-the-path?${QUERY_SECRET}`,
    });
  const reportRun = async (headers: Record<string, string> = {}) => {
    const { status } = await callApi(system, management, {
      method: 'POST',
      path: `/v2/accounts/${system.account.id}/runs/`,
      body: { job_id: system.account.jobs[0]?.id, engine_version: '1.9.2' },
      headers,
    });
    expect(status).toBe(201);
  };
  const spansOf = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId);
  /** Returns the names from a span up to the root of its trace. */
  const lineOf = (span: CollectedSpan): string[] => {
    const hasParentIn = collector.spans.find(
      ({ traceId, spanId }) => traceId === span.traceId && spanId === span.parentSpanId,
    );
    return hasParentIn ? [span.name, ...lineOf(hasParentIn)] : [span.name];
  };
  const attempts = () => collector.spans.filter(({ name }) => name === 'attempt');

  test(`the trace of an event reaches from REST over relay, fan-out, delivery, attempt and retry to the endpoint, with the queue on ${ofReports.name}`, async () => {
    await open(ofReports);
    await subscribe();
    [management] = await Promise.all([
      system.start('management', traced),
      system.start('dispatcher', { ...traced, TRACE_PROPAGATE_TO_ENDPOINTS: 'true' }),
    ]);
    system.receiver.respondWith((_request, index) => ({ status: index === 0 ? 503 : 200 }));
    const callerTraceId = randomBytes(16).toString('hex');
    const callerSpanId = randomBytes(8).toString('hex');
    await reportRun({ traceparent: `00-${callerTraceId}-${callerSpanId}-01` });
    await system.receiver.waitFor(2);

    const [first, retry] = await eventually(() => {
      expect(attempts()).toHaveLength(2);
      const ends = attempts().sort((a, b) => numberOf(a) - numberOf(b));
      // The spans of the queue jobs may be exported later.
      for (const end of ends) expect(lineOf(end).at(-1)).toMatch(/^POST /);
      return ends as [CollectedSpan, CollectedSpan];
    });
    const rest = 'POST /api/v2/accounts/:account_id/runs';
    const fanOut = ['deliver', 'fan-out', 'process job-run-events', 'relay', rest];
    expect(lineOf(first)).toEqual(['attempt', ...fanOut]);
    expect(lineOf(retry)).toEqual(['attempt', 'deliver', 'process webhook-deliveries', ...fanOut]);

    // All spans are in the caller's trace, and each has a parent in it.
    const spans = spansOf(callerTraceId);
    const ids = new Set(spans.map(({ spanId }) => spanId));
    const roots = spans.filter(({ parentSpanId }) => !ids.has(parentSpanId));
    expect(roots).toMatchObject([{ name: rest, parentSpanId: callerSpanId, service: 'runhook-management' }]);
    expect([first, retry].map(({ traceId }) => traceId)).toEqual([callerTraceId, callerTraceId]);

    expect(first).toMatchObject({
      service: 'runhook-dispatcher',
      kind: 3,
      statusCode: 2,
      attributes: {
        'http.request.method': 'POST',
        'http.response.status_code': 503,
        'error.type': 'unsuccessful_status',
        'server.address': '127.0.0.1',
        'server.port': system.receiver.port,
        'runhook.attempt.number': 1,
        'runhook.outcome': 'retry',
      },
    });
    expect(retry.attributes).toMatchObject({
      'http.request.resend_count': 1,
      'http.response.status_code': 200,
    });
    // Spans of the endpoint would be children of the attempt that called it.
    expect(system.receiver.requests.map(({ headers }) => headers.traceparent)).toEqual(
      [first, retry].map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`),
    );
    const exported = collector.bodies.join('\n');
    expect(exported).toContain(`{"key":"service.version","value":{"stringValue":"${VERSION}"}}`);
    for (const secret of [QUERY_SECRET, 'in-the-path', system.token, 'Nightly build', 'whsec_']) {
      expect(exported).not.toContain(secret);
    }
  });

  test(`the trace of an event continues that of its publisher, with the queue on ${ofPublisher.name}, and endpoints get no traceparent by default`, async () => {
    await open(ofPublisher);
    await subscribe();
    await system.start('dispatcher', traced);
    const event = exampleEvent('job.run.started', system.account.jobs[0] as never);
    await promisify(execFile)(process.execPath, [PUBLISHER, JSON.stringify(event)], {
      env: { ...traced, QUEUE_URL: system.queueUrl },
    });
    await system.receiver.waitFor(1);
    await eventually(() => {
      const [attempt] = attempts();
      expect(attempt && lineOf(attempt)).toEqual([
        'attempt',
        'deliver',
        'fan-out',
        'process job-run-events',
        'addBulk job-run-events',
        'job',
      ]);
    });
    expect(system.receiver.requests[0]?.headers).not.toHaveProperty('traceparent');
  });

  test('a sampler that drops everything exports nothing', async () => {
    await open(ofReports);
    await subscribe();
    const withSampling = { ...traced, OTEL_TRACES_SAMPLER: 'always_off' };
    const dispatcher = await Promise.all([
      system.start('management', withSampling),
      system.start('dispatcher', withSampling),
    ]).then(([started, other]) => {
      management = started;
      return other;
    });
    await reportRun();
    await system.receiver.waitFor(1);
    // A stop exports the remaining spans.
    expect(await Promise.all([management.stop(), dispatcher.stop()])).toEqual([0, 0]);
    expect(collector.bodies).toEqual([]);
  });
});

function numberOf({ attributes }: CollectedSpan): number {
  return Number(attributes['runhook.attempt.number']);
}
