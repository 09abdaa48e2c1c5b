import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { readSettings as readDispatcher } from '../../services/dispatcher/src/settings.ts';
import { readSettings as readManagement } from '../../services/management/src/settings.ts';
import { readSettings as readMigrate } from '../../services/migrate/src/settings.ts';
import { alertRules } from '../observability/monitoring-files.ts';
import { checkout, findRenderer, type Manifest, overlays, podTemplateOf } from './manifests.ts';
import { readVariables } from './read-variables.ts';
import { manifestProblems } from './schema-problems.ts';

const chart = join(checkout, 'k8s', 'chart');
const readChart = (file: string) => readFileSync(join(chart, file), 'utf8');
const values = parse(readChart('values.yaml'));
const schema = JSON.parse(readChart('values.schema.json'));
const settingSchemas: Record<string, { minimum?: number; maximum?: number }> =
  schema.properties.settings.properties;

/** Variables that are not in `settings`, and where they are set instead. */
const EXTERNAL_SETTINGS = {
  DATABASE_URL: 'secret',
  MANAGEMENT_DATABASE_URL: 'secret',
  DISPATCHER_DATABASE_URL: 'secret',
  QUEUE_URL: 'secret',
  ENCRYPTION_KEYS: 'secret',
  SMTP_URL: 'secret',
  DATABASE_REPLICA_URL: 'secret',
  EGRESS_CLIENT_CERT: 'secret',
  EGRESS_CLIENT_KEY: 'secret',
  OIDC_CLIENT_SECRET: 'secret',
  PORT: 'management.port, dispatcher.port',
  OPERATIONS_PORT: 'management.operationsPort',
};

test('the chart has a value for each variable that a service reads, and for no other', () => {
  const read = new Set(Object.values(readVariables).flatMap((names) => [...names]));
  const settings = Object.keys(values.settings);
  expect([...settings, ...Object.keys(EXTERNAL_SETTINGS)].sort()).toEqual([...read].sort());
  expect(Object.keys(settingSchemas).sort()).toEqual(settings.sort());
});

test('the schema of the chart rejects unknown values, and accepts the defaults', () => {
  const validate = new Ajv({ strict: false }).compile(schema);
  expect([validate(values), validate.errors]).toEqual([true, null]);
  const unknown = { ...values, settings: { ...values.settings, LOG_LEVL: 'info' } };
  expect(validate(unknown)).toBe(false);
  expect(validate({ ...values, entrance: { ...values.entrance, by: 'gateway' } })).toBe(false);
});

test('the schema of the chart accepts exactly the ranges of numbers that the services accept', () => {
  const required = {
    DATABASE_URL: 'postgres://localhost/x',
    QUEUE_URL: 'redis://localhost',
    ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
  };
  const readers = Object.entries({
    management: readManagement,
    dispatcher: readDispatcher,
    migrate: readMigrate,
  });
  const isTaken = (name: string, value: number) =>
    readers
      .filter(([service]) => readVariables[service]?.has(name))
      .every(([, read]) => {
        try {
          read({ ...required, [name]: String(value) });
          return true;
        } catch {
          return false;
        }
      });
  const ranges = Object.entries(settingSchemas).flatMap(([name, { minimum, maximum }]) =>
    minimum === undefined || maximum === undefined ? [] : [{ name, minimum, maximum }],
  );
  expect(ranges.length).toBeGreaterThan(15);
  for (const { name, minimum, maximum } of ranges) {
    const around = [minimum - 1, minimum, maximum, maximum + 1].map((value) => isTaken(name, value));
    expect([name, around]).toEqual([name, [false, true, true, false]]);
  }
});

/** Path of helm: on the path, or in the cache of `npm run prove -- chart`. */
const fetchedFile = join(checkout, 'node_modules', '.cache', 'runhook', 'helm');
const helm = [fetchedFile, 'helm'].find(
  (file) => (file === 'helm' || existsSync(file)) && spawnSync(file, ['version']).status === 0,
);
const renderer = findRenderer();
if (helm === undefined)
  process.stderr.write(
    '\nthe chart is not rendered: there is no helm on the path, and npm run prove -- chart has not fetched one\n',
  );

function runHelm(args: string[]) {
  const all = ['template', 'runhook', chart, '--kube-version', '1.34.0', ...args];
  return spawnSync(helm as string, all, { encoding: 'utf8' });
}

const NO_PROXY = ['--set', 'settings.TRUSTED_PROXY_CIDRS='];

function renderChart(args: string[]): Manifest[] {
  const { status, stdout, stderr } = runHelm(args);
  expect([status, status === 0 ? '' : stderr]).toEqual([0, '']);
  // Kubernetes uses YAML 1.1, in which 0440 is octal.
  return parseAllDocuments(stdout, { version: '1.1' })
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

const HELM_FIELDS = /^(helm\.sh\/|app\.kubernetes\.io\/(instance|managed-by|version)$|checksum\/settings$)/;

/** Removes the parts that only one of the two renders: labels and annotations of Helm, and the hash in the name of a config map. */
function comparable(manifests: Manifest[]): [string, Manifest][] {
  const bare = (record: Record<string, string> = {}) => {
    const others = Object.entries(record).filter(([name]) => !HELM_FIELDS.test(name));
    return others.length === 0 ? undefined : Object.fromEntries(others);
  };
  // The chart adds the label of the application to objects that belong to no component.
  const withoutHelmFields = ({ labels, annotations, ...rest }: Manifest['metadata'], isOfOne = true) =>
    ({
      ...rest,
      labels: isOfOne ? bare(labels) : undefined,
      annotations: bare(annotations),
    }) as Manifest['metadata'];
  return manifests
    .filter(({ kind, metadata }) => kind !== 'Namespace' && metadata.labels?.['runhook/part'] !== 'data')
    .filter(({ kind, metadata }) => kind !== 'NetworkPolicy' || !/^(postgres|redis)$/.test(metadata.name))
    .map((manifest) => {
      const text = JSON.stringify(manifest).replace(/"runhook-[0-9a-z]{10}"/g, '"runhook"');
      const copy = JSON.parse(text) as Manifest;
      copy.metadata = withoutHelmFields(copy.metadata, !['NetworkPolicy', 'ConfigMap'].includes(copy.kind));
      const template = podTemplateOf(copy);
      if (template) template.metadata = withoutHelmFields(template.metadata);
      return [`${copy.kind} ${copy.metadata.name}`, JSON.parse(JSON.stringify(copy))] as [string, Manifest];
    })
    .sort(([a], [b]) => a.localeCompare(b));
}

const describeChart = helm === undefined || renderer === null ? describe.skip : describe;

describeChart('the chart', () => {
  test.each(overlays)('renders the objects of the overlay %s with the values of k8s/chart/ci', (overlay) => {
    const namespace = overlay === 'development' ? 'runhook-development' : 'runhook';
    const file = join(chart, 'ci', `${overlay}-values.yaml`);
    const rendered = renderChart(['--namespace', namespace, '--values', file]);
    expect(rendered.flatMap(manifestProblems)).toEqual([]);
    const expected = comparable(renderer?.render(overlay) ?? []);
    // The overlay's own database is ready before the migration only if the migration is not a PreSync hook.
    if (overlay === 'development') {
      const migrate = expected.find(([id]) => id === 'Job migrate')?.[1] as Manifest;
      migrate.metadata.annotations = {
        ...migrate.metadata.annotations,
        'argocd.argoproj.io/hook': 'PreSync',
      };
    }
    const made = comparable(rendered);
    expect(made.map(([id]) => id)).toEqual(expected.map(([id]) => id));
    for (const [index, [id, manifest]] of expected.entries())
      expect([id, made[index]?.[1]]).toEqual([id, manifest]);
  });

  test('refuses to render without the addresses of the proxies in front', () => {
    const entrance = ['--set', 'entrance.by=gateway,entrance.host=h.example.com'];
    for (const args of [[], entrance, [...entrance, ...NO_PROXY]]) {
      const { status, stderr } = runHelm(args);
      expect([status, stderr]).toEqual([1, expect.stringContaining('set settings.TRUSTED_PROXY_CIDRS to')]);
    }
  });

  test('renders only built-in kinds of Kubernetes by default, and the migration as a hook', () => {
    const rendered = renderChart(NO_PROXY);
    expect(rendered.flatMap(manifestProblems)).toEqual([]);
    expect([...new Set(rendered.map(({ apiVersion }) => apiVersion))].sort()).toEqual([
      'apps/v1',
      'batch/v1',
      'networking.k8s.io/v1',
      'policy/v1',
      'v1',
    ]);
    const hooks = rendered.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] !== undefined);
    expect(hooks.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual([
      'Job migrate',
      'ServiceAccount migrate',
    ]);
  });

  test('names the images of its release by digest, and those of another tag by the tag', () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const imageOf = (set: string) => {
      const rendered = renderChart([...NO_PROXY, '--set', `image.digests.dispatcher=${digest}${set}`]);
      const dispatcher = rendered.find(
        ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'dispatcher',
      );
      return dispatcher?.spec.template.spec.containers[0].image;
    };
    expect(imageOf('')).toMatch(new RegExp(`^ghcr.io/runhook/runhook/dispatcher:\\d\\S+@${digest}$`));
    expect(imageOf(',image.tag=9.9.9')).toBe('ghcr.io/runhook/runhook/dispatcher:9.9.9');
  });

  test('renders values that no overlay sets into objects that match their schemas', () => {
    const set = [
      'monitoring.enabled=true,monitoring.labels.release=stack,monitoring.runbookUrl=https://wiki.example.com/r',
      'secret.smtp=true,secret.replica=true,secret.clientCertificate=true,secret.oidc=true,settings.MAIL_FROM=a@example.com,settings.PENDING_DELIVERIES_PER_ACCOUNT=1000000',
      'management.port=8080,management.operationsPort=8081,dispatcher.port=8082,settings.DELIVERY_TIMEOUT_MS=20500',
      'image.registry=r.example.com,image.tag=9.9.9,image.pullSecrets[0].name=pull',
      'pods.env[0].name=OTEL_SERVICE_NAME,pods.env[0].value=a,pods.nodeSelector.disk=ssd,pods.annotations.a=b',
      'entrance.by=gateway,entrance.host=h.example.com,entrance.sharedGateway.name=shared',
      'settings.TRUSTED_PROXY_CIDRS=10.64.8.0/24',
    ];
    const rendered = renderChart(set.flatMap((pairs) => ['--set', pairs]));
    expect(rendered.flatMap(manifestProblems)).toEqual([]);
    const named = (kind: string, name: string) =>
      rendered.find((manifest) => manifest.kind === kind && manifest.metadata.name === name) as Manifest;
    const rules = named('PrometheusRule', 'runhook').spec.groups.flatMap(({ rules }: Manifest) => rules);
    expect(rules.map(({ expr }: Manifest) => expr)).toEqual(alertRules().map(({ expr }) => expr));
    expect(rules[0].annotations.runbook_url).toBe('https://wiki.example.com/r#runhookoldestduedelivery');
    expect(named('ServiceMonitor', 'runhook').metadata.labels).toMatchObject({ release: 'stack' });
    expect(JSON.parse(named('ConfigMap', 'runhook-dashboard').data['runhook.json']).uid).toBe('runhook');
    expect(named('ConfigMap', 'runhook').data.PENDING_DELIVERIES_PER_ACCOUNT).toBe('1000000');
    const { spec } = named('Deployment', 'dispatcher').spec.template;
    expect(spec).toMatchObject({ terminationGracePeriodSeconds: 56, nodeSelector: { disk: 'ssd' } });
    const [container] = spec.containers;
    expect(container.image).toBe('r.example.com/runhook/runhook/dispatcher:9.9.9');
    expect(container.env).toEqual(
      expect.arrayContaining([
        { name: 'SMTP_URL_FILE', value: '/run/secrets/runhook/SMTP_URL' },
        { name: 'EGRESS_CLIENT_KEY_FILE', value: '/run/secrets/runhook/EGRESS_CLIENT_KEY' },
        { name: 'OTEL_SERVICE_NAME', value: 'a' },
        { name: 'PORT', value: '8082' },
      ]),
    );
    for (const name of ['DATABASE_REPLICA_URL', 'OIDC_CLIENT_SECRET'])
      expect(named('Deployment', 'management').spec.template.spec.containers[0].env).toContainEqual({
        name: `${name}_FILE`,
        value: `/run/secrets/runhook/${name}`,
      });
    expect(named('HTTPRoute', 'management').spec.parentRefs).toEqual([{ name: 'shared' }]);
    expect(rendered.some(({ kind }) => kind === 'Gateway')).toBe(false);
  });
});
