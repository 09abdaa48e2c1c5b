import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually, queueBackends } from '@runhook/testing';
import { type BusySystem, openBusySystem } from './busy-system.ts';
import { parseExposition, type Sample, typesOf } from './exposition.ts';
import {
  alertRules,
  anchorsOf,
  dashboardPanels,
  monitoringFile,
  withoutVariables,
} from './monitoring-files.ts';
import { hasProgram, startPrometheus } from './prometheus.ts';
import { findReferences } from './promql.ts';

const backend = queueBackends().at(-1) ?? { name: 'PostgreSQL' };
/** Set by `npm run prove -- dashboard`: the value of each panel is printed. */
const isReported = process.env.PROVE_DASHBOARD !== undefined;

/** Labels that Prometheus adds when it scrapes. */
const TARGET_LABELS = ['instance', 'job'];
/** Maps the labels of Runhook's metrics to their permitted values. */
const LABELS: Record<string, RegExp> = {
  service: /^(management|dispatcher)$/,
  server: /^(replica|primary)$/,
  queue: /^(job-run-events|webhook-deliveries)$/,
  table: /^(events|deliveries|attempts)$/,
  state: /^(waiting|active|delayed|failed|paused|total|idle)$/,
  result:
    /^(fanned_out|duplicate|resumed|malformed|conflict|out_of_range|sent|left_to_reconciler|quarantined|stored|too_large|invalid|over_limit|rejected)$/,
  reason: /^(wrong_password|unknown_email|limited|busy|single_sign_on)$/,
  budget: /^(requests|slow_reads|endpoint_tests|large_bodies|uploads|downloads)$/,
  route: /^(immediate|deferred|cancelled|none|(\/[a-z0-9-]+|\/:[a-z_]+)+)$/,
  outcome: /^(delivered|retry|failed|cancelled)$/,
  code: /^[a-z_]{4,30}$/,
  batch:
    /^(load_subscriptions|load_event_states|commit|commit_attempted|load_deliveries|defer|record_attempts|cancel|release_successors|change_blocks|enqueue)$/,
  kind: /^(delivery|event|retry|lane|recovery|status|notice|conflict|out_of_range)$/,
  dependency: /^(database|queue)$/,
  method: /^(GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS|other)$/,
  status_class: /^[2345]xx$/,
  version: /^\d+\.\d+\.\d+/,
  node_version: /^\d+\.\d+\.\d+/,
  le: /^(\+Inf|\d+(\.\d+)?)$/,
};
const SERIES_OF_A_METRIC_MAX = 300;

let busySystem: BusySystem;
let exposed: { text: string; samples: Sample[] };
beforeAll(async () => {
  busySystem = await openBusySystem(backend);
  // Waits until all parts have counted something: retries, a rejected attempt, a delivery that failed.
  exposed = await eventually(
    async () => {
      const text = await scrape();
      const samples = parseExposition(text);
      const isCounted = (name: string, labels: object = {}) =>
        expect(samples).toContainEqual({
          name,
          labels: expect.objectContaining(labels),
          value: expect.any(Number),
        });
      isCounted('runhook_attempt_errors_total', { code: 'address_forbidden' });
      isCounted('runhook_attempt_errors_total', { code: 'unsuccessful_status' });
      isCounted('runhook_batch_size_count', { batch: 'load_deliveries' });
      isCounted('runhook_http_requests_total', { route: 'none', status_class: '4xx' });
      isCounted('runhook_backlog_oldest_due_age_seconds', { queue: 'webhook-deliveries' });
      const failed = samples.find(
        ({ name, labels }) => name === 'runhook_deliveries_completed_total' && labels.outcome === 'failed',
      );
      expect(failed?.value).toBeGreaterThan(0);
      return { text, samples };
    },
    { intervalMs: 250 },
  );
});
afterAll(() => busySystem?.close());

async function scrape(): Promise<string> {
  const services = [busySystem.management, busySystem.dispatcher];
  return (
    await Promise.all(
      services.map(async ({ operationsUrl }) => (await fetch(`${operationsUrl}/metrics`)).text()),
    )
  ).join('');
}

const ownMetrics = () => exposed.samples.filter(({ name }) => name.startsWith('runhook_'));

test('metrics have names and base units by the conventions of Prometheus', () => {
  for (const [name, type] of typesOf(exposed.text)) {
    if (!name.startsWith('runhook_')) continue;
    expect(name).toMatch(/^runhook_[a-z]+(_[a-z]+)*$/);
    expect(name).not.toMatch(/_(ms|millis|milliseconds|minutes|kb|percent)(_|$)/);
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
  }
  expect(typesOf(exposed.text).size).toBeGreaterThan(50);
});

test('no label of a metric depends on accounts, subscriptions, endpoints, events or callers', () => {
  expect(ownMetrics().length).toBeGreaterThan(100);
  for (const { name, labels } of ownMetrics()) {
    for (const [label, value] of Object.entries(labels)) {
      expect({ name, label, labelsSeen: Object.hasOwn(LABELS, label) }).toEqual({
        name,
        label,
        labelsSeen: true,
      });
      expect({ name, label, value }).toEqual({
        name,
        label,
        value: expect.stringMatching(LABELS[label] as RegExp),
      });
    }
  }
  const series = new Map<string, number>();
  for (const { name } of exposed.samples) series.set(name, (series.get(name) ?? 0) + 1);
  for (const [name, count] of series) {
    expect({ name, isBounded: count <= SERIES_OF_A_METRIC_MAX }).toEqual({ name, isBounded: true });
  }
  for (const word of busySystem.unboundedLabelValues) expect(exposed.text).not.toContain(word);
});

test('the dashboard and the alerts use only metrics and labels that the services expose', () => {
  const labelsByMetric = new Map<string, Set<string>>();
  for (const { name, labels } of exposed.samples) {
    const labelsSeen = labelsByMetric.get(name) ?? new Set(TARGET_LABELS);
    for (const label of Object.keys(labels)) labelsSeen.add(label);
    labelsByMetric.set(name, labelsSeen);
  }
  const expressions = [
    ...dashboardPanels().flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr }))),
    ...alertRules().map(({ alert, expr }) => ({ title: alert, expr })),
  ];
  expect(expressions.length).toBeGreaterThan(50);
  for (const { title, expr } of expressions) {
    const { metrics, labels } = findReferences(withoutVariables(expr));
    expect({ title, count: metrics.length }).not.toEqual({ title, count: 0 });
    for (const metric of metrics) {
      expect({ title, metric, labels: [...(labelsByMetric.get(metric) ?? [])] }).toEqual({
        title,
        metric,
        labels: expect.arrayContaining(labels),
      });
    }
  }
});

test('every alert has a severity, and links to a section of the runbook', () => {
  const anchors = anchorsOf('docs/runbook.md');
  const { homepage } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  for (const { alert, labels, annotations } of alertRules()) {
    expect({ alert, severity: labels.severity }).toEqual({
      alert,
      severity: expect.stringMatching(/^(critical|warning|info)$/),
    });
    expect(annotations.summary).toBeTruthy();
    expect(annotations.runbook_url).toBe(`${homepage}/blob/main/docs/runbook.md#${alert.toLowerCase()}`);
    expect({ alert, hasSection: anchors.has(alert.toLowerCase()) }).toEqual({ alert, hasSection: true });
  }
});

describe('with the programs of Prometheus', () => {
  function skipped(program: string): void {
    process.stdout.write(`skipped, because ${program} is not on the path\n`);
  }

  test('the alert rules and the sample configuration are valid, and the alerts fire as their tests expect', async () => {
    if (!hasProgram('promtool')) return skipped('promtool');
    for (const args of [
      ['check', 'rules', monitoringFile('alerts.yaml')],
      ['check', 'config', monitoringFile('prometheus.yaml')],
      ['test', 'rules', monitoringFile('alerts.test.yaml'), monitoringFile('alerts.hours.test.yaml')],
    ]) {
      // Asynchronous, because it takes seconds and the load of this file runs in this process.
      const exitResult = await promisify(execFile)('promtool', args).then(
        () => 'well',
        ({ stdout, stderr }) => `${stdout}${stderr}`,
      );
      expect({ args, exitResult }).toEqual({ args, exitResult: 'well' });
    }
  });

  test('every panel of the dashboard shows data of the running services', async () => {
    if (!hasProgram('prometheus')) return skipped('prometheus');
    const prometheus = await startPrometheus({
      management: new URL(busySystem.management.operationsUrl).host,
      dispatcher: new URL(busySystem.dispatcher.operationsUrl).host,
    });
    try {
      for (const { title, targets = [] } of dashboardPanels()) {
        for (const { expr } of targets) {
          const series = await eventually(
            async () => {
              const found = await prometheus.query(withoutVariables(expr));
              const finite = found.filter(({ value }) => Number.isFinite(value));
              expect({ title, expr, hasData: finite.length > 0 }).toEqual({ title, expr, hasData: true });
              return finite;
            },
            { intervalMs: 500 },
          );
          if (isReported) printQuery(title, expr, series.length, series[0]?.value);
        }
      }
      const firing = await Promise.all(alertRules().map(({ expr }) => prometheus.query(expr)));
      expect(firing).toHaveLength(alertRules().length);
    } finally {
      await prometheus.close();
    }
  });
});

function printQuery(title: string, expr: string, count: number, first: number | undefined): void {
  process.stderr.write(`${title.padEnd(32)} ${String(count).padStart(3)} series  ${first}  ${expr}\n`);
}
