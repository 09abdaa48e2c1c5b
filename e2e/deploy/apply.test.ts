import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { alertRules } from '../observability/monitoring-files.ts';
import { checkout, type Manifest } from './manifests.ts';
import { manifestProblems } from './schema-problems.ts';

/** Replaces kubectl: prints the output that a cluster would return, and logs the calls. */
const KUBECTL = `#!/bin/sh
echo "$*" | sed 's# /[^ ]*# FILE#g' >>"$CALLS"
case "$*" in
  kustomize*) cat "$MANIFESTS" ;;
  *'get secret'*) echo "$SECRET" ;;
  *'get job'*) echo "$CONDITIONS" ;;
esac
`;
const PRODUCTION = 'kind: Deployment\nmetadata:\n  name: dispatcher\n  namespace: runhook\n';
const DEVELOPMENT = `kind: StatefulSet\nmetadata:\n  name: postgres\n  namespace: runhook\n`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'runhook-apply-'));
  writeFileSync(join(folder, 'kubectl'), KUBECTL);
  chmodSync(join(folder, 'kubectl'), 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

function apply(manifests: string, conditions: string, secret = 'cG9zdGdyZXM6Ly8=') {
  const [CALLS, MANIFESTS] = [join(folder, 'calls'), join(folder, 'manifests')];
  writeFileSync(MANIFESTS, manifests);
  const { status, stderr } = spawnSync(join(checkout, 'k8s', 'apply.sh'), [folder], {
    encoding: 'utf8',
    env: {
      ...process.env,
      KUBECTL: join(folder, 'kubectl'),
      CALLS,
      MANIFESTS,
      CONDITIONS: conditions,
      SECRET: secret,
    },
  });
  const calls = readFileSync(CALLS, 'utf8').trim().split('\n');
  return { status, stderr, calls: calls.map((call) => call.replace('--namespace runhook ', '')) };
}

const UNTIL_MIGRATED = [
  'delete job migrate --ignore-not-found',
  'apply -f FILE -l app.kubernetes.io/component=migrate',
  'get job migrate -o jsonpath={.status.conditions[?(@.status=="True")].type}',
];
const ROLL_OUT = [
  'apply -f FILE',
  'rollout status deployment/management',
  'rollout status deployment/dispatcher',
];

describe('k8s/apply.sh', () => {
  test('migrates, and rolls out after the migration succeeded', () => {
    const { status, calls } = apply(PRODUCTION, 'SuccessCriteriaMet Complete');
    expect(calls).toEqual([
      'kustomize FILE',
      'get secret runhook -o jsonpath={.data.MANAGEMENT_DATABASE_URL}',
      ...UNTIL_MIGRATED,
      ...ROLL_OUT,
    ]);
    expect(status).toBe(0);
  });

  test('applies nothing while the secret has no URLs of the roles', () => {
    const { status, stderr, calls } = apply(PRODUCTION, 'Complete', '');
    expect([status, calls.length]).toEqual([1, 2]);
    expect(stderr).toContain('has no MANAGEMENT_DATABASE_URL');
  });

  test('starts the database first if it is part of the manifests', () => {
    const { calls } = apply(DEVELOPMENT, 'Complete');
    expect(calls.slice(2)).toEqual(['apply -f FILE -l runhook/part=data', ...UNTIL_MIGRATED, ...ROLL_OUT]);
  });

  test('rolls nothing out after the migration failed', () => {
    const { status, stderr, calls } = apply(PRODUCTION, 'FailureTarget Failed');
    expect(calls.slice(2)).toEqual([...UNTIL_MIGRATED, 'logs job/migrate --tail=20']);
    expect([status, stderr]).toEqual([1, 'the migration failed; nothing was rolled out\n']);
  });
});

test('k8s/monitoring/operator.sh prints objects that match the schemas of the Prometheus Operator, with the rules of alerts.yaml', () => {
  const print = (env: object = {}) => {
    const script = join(checkout, 'k8s', 'monitoring', 'operator.sh');
    const { status, stdout } = spawnSync(script, { encoding: 'utf8', env: { ...process.env, ...env } });
    expect(status).toBe(0);
    return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
  };
  const manifests = print();
  expect(manifests.map(({ kind }) => kind)).toEqual(['ServiceMonitor', 'PrometheusRule']);
  expect(manifests.flatMap(manifestProblems)).toEqual([]);
  const rulesOf = ([, rule]: Manifest[]) => rule?.spec.groups.flatMap(({ rules }: Manifest) => rules);
  expect(rulesOf(manifests)).toEqual(alertRules());
  const moved = rulesOf(print({ RUNBOOK_URL: 'https://wiki.example.com/runhook' }));
  expect(moved.map(({ annotations }: Manifest) => annotations.runbook_url)).toEqual(
    alertRules().map(({ alert }) => `https://wiki.example.com/runhook#${alert.toLowerCase()}`),
  );
});

test('the schema check of manifests reports a misspelt field, a wrong type and a missing field', () => {
  const manifest = parse(`
    apiVersion: apps/v1
    kind: Deployment
    metadata: { name: a }
    spec:
      replicas: many
      template: { spec: { containers: [{ image: b, readinesProbe: {} }] } }
  `) as Manifest;
  const problems = manifestProblems(manifest).join('\n');
  for (const found of ['readinesProbe', '/spec/replicas', "'selector'", "'name'"])
    expect(problems).toContain(found);
});
