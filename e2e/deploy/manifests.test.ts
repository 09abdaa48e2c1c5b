import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { forbiddenIpv4, forbiddenIpv6 } from '../../packages/egress/src/address-guard.ts';
import { checkout, findRenderer, type Manifest, overlays, podTemplateOf, selects } from './manifests.ts';
import { manifestProblems } from './schema-problems.ts';

const renderer = findRenderer();
if (renderer === null) {
  process.stderr.write('\nthe manifests are not rendered: neither kubectl nor kustomize is on the path\n');
} else process.stderr.write(`\nthe manifests are rendered by ${renderer.version}\n`);

/** Operators create the secrets (docs/deployment.md); git contains none. */
const SECRETS: Record<string, readonly string[]> = {
  runhook: [
    'DATABASE_URL',
    'MANAGEMENT_DATABASE_URL',
    'DISPATCHER_DATABASE_URL',
    'QUEUE_URL',
    'ENCRYPTION_KEYS',
  ],
  postgres: ['password'],
};

const describeRendered = renderer === null ? describe.skip : describe;

describeRendered('the production overlays', () => {
  test.each(overlays.filter((overlay) => overlay !== 'development'))(
    '%s is not rendered without the addresses of the proxies in front',
    (overlay) => {
      expect(() => renderer?.render(overlay, null)).toThrow('production-base/trusted-proxies.env');
      const settings = renderer?.render(overlay).find(({ kind }) => kind === 'ConfigMap');
      expect(settings?.data.TRUSTED_PROXY_CIDRS).toBe('10.64.8.0/24');
    },
  );
});

describeRendered.each(overlays)('the Kubernetes overlay %s', (overlay) => {
  const manifests = renderer?.render(overlay) ?? [];
  const ofKind = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);
  const named = (kind: string, name: string) => ofKind(kind).find(({ metadata }) => metadata.name === name);
  const workloads = manifests.filter((manifest) => podTemplateOf(manifest) !== null);
  const templates = workloads.map((workload) => ({
    workload,
    template: podTemplateOf(workload) as Manifest,
  }));
  const containersOf = (template: Manifest) => template.spec.containers as Manifest['spec'][];

  test('every object matches the schema of its kind, without unknown fields', () => {
    expect(manifests.length).toBeGreaterThan(10);
    expect(manifests.flatMap(manifestProblems)).toEqual([]);
  });

  test('all objects of a kind have different names, and are in the namespace of the overlay', () => {
    const ids = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
    const [namespace] = ofKind('Namespace').map(({ metadata }) => metadata.name);
    for (const { kind, metadata } of manifests) {
      if (kind !== 'Namespace') expect([kind, metadata.namespace]).toEqual([kind, namespace]);
    }
  });

  test('every selector selects existing pods, and none of another service', () => {
    for (const { workload, template } of templates) {
      if (workload.kind !== 'Job')
        expect(selects(workload.spec.selector, template.metadata.labels)).toBe(true);
    }
    const selectors = [
      ...ofKind('Service').map(({ metadata, spec }) => [
        metadata.name.replace(/-operations$/, ''),
        { matchLabels: spec.selector ?? {} },
      ]),
      ...ofKind('PodDisruptionBudget').map(({ metadata, spec }) => [metadata.name, spec.selector]),
      ...templates.flatMap(({ workload, template }) =>
        (template.spec.topologySpreadConstraints ?? []).map((constraint: Manifest) => [
          workload.metadata.name,
          constraint.labelSelector,
        ]),
      ),
    ] as [string, { matchLabels: Record<string, string> }][];
    for (const [name, selector] of selectors) {
      const selected = templates.filter(({ template }) => selects(selector, template.metadata.labels));
      expect(selected.map(({ workload }) => workload.metadata.name)).toEqual([name]);
    }
  });

  test('every port that is referenced is opened by a container', () => {
    const portsOf = (labels: object) =>
      templates
        .filter(({ template }) =>
          selects({ matchLabels: labels as Record<string, string> }, template.metadata.labels),
        )
        .flatMap(({ template }) => containersOf(template).flatMap(({ ports = [] }) => ports))
        .map(({ name }) => name);
    for (const { spec } of ofKind('Service')) {
      if (spec.selector === undefined) continue;
      for (const { targetPort } of spec.ports) expect(portsOf(spec.selector)).toContain(targetPort);
    }
    for (const { template } of templates) {
      for (const container of containersOf(template)) {
        const names = (container.ports ?? []).map(({ name }: { name: string }) => name);
        for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
          const port = container[probe]?.httpGet?.port;
          if (port !== undefined) expect(names).toContain(port);
        }
      }
    }
    for (const { spec } of ofKind('NetworkPolicy')) {
      const open = (spec.ingress ?? []).flatMap(({ ports = [] }: Manifest) => ports);
      for (const { port } of open) {
        if (typeof port === 'string') expect(portsOf(spec.podSelector.matchLabels)).toContain(port);
      }
    }
  });

  test('management has one public entry over TLS (none in development), and the metrics have none', () => {
    const ports = named('Service', 'management')?.spec.ports as Manifest[];
    expect(ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
    const open = ofKind('NetworkPolicy').filter(({ spec }) =>
      spec.ingress?.some(({ ports: opened = [] }: Manifest) =>
        opened.some(({ port }: Manifest) => port === 'operations'),
      ),
    );
    expect(open.map(({ metadata }) => metadata.name)).toEqual(['metrics']);

    const backends = [
      ...ofKind('Ingress').flatMap(({ spec }) => {
        expect(spec.tls[0].hosts).toEqual(spec.rules.map(({ host }: Manifest) => host));
        return spec.rules.flatMap(({ http }: Manifest) => http.paths.map((path: Manifest) => path.backend));
      }),
      ...ofKind('HTTPRoute').flatMap(({ spec }) => {
        const listeners = named('Gateway', spec.parentRefs[0].name)?.spec.listeners as Manifest[];
        const { hostname, protocol } = listeners.find(
          ({ name }) => name === spec.parentRefs[0].sectionName,
        ) as Manifest;
        expect(spec.hostnames).toEqual([hostname]);
        const routed = spec.rules.flatMap(({ backendRefs = [] }: Manifest) => backendRefs);
        expect([protocol, routed.length]).toEqual([protocol, protocol === 'HTTPS' ? 1 : 0]);
        return routed.map(({ name, port }: Manifest) => ({
          service: { name, port: { name: ports.find((candidate) => candidate.port === port)?.name } },
        }));
      }),
    ];
    const isDevelopment = overlay === 'development';
    expect(backends).toEqual(
      isDevelopment ? [] : [{ service: { name: 'management', port: { name: 'http' } } }],
    );
  });

  test('the gateway or the ingress may connect to management and to the pod that solves certificate challenges', () => {
    const sources = ['api', 'acme-solver'].map((name) => named('NetworkPolicy', name)?.spec.ingress[0].from);
    if (overlay === 'development') return expect(sources).toEqual([undefined, undefined]);
    expect(sources[0]).toEqual(sources[1]);
    expect(sources[0].length).toBeGreaterThan(0);
    expect(named('NetworkPolicy', 'acme-solver')?.spec.podSelector.matchLabels).toEqual({
      'acme.cert-manager.io/http01-solver': 'true',
    });
    const gateway = ofKind('Gateway')[0]?.metadata.name;
    if (gateway === undefined) return;
    const proxies = { 'gateway.networking.k8s.io/gateway-name': gateway };
    expect(sources[0]).toContainEqual({ podSelector: { matchLabels: proxies } });
    expect(named('NetworkPolicy', 'gateway')?.spec).toMatchObject({
      podSelector: { matchLabels: proxies },
      ingress: [{}],
      egress: [{}],
    });
  });

  test('the migration runs before the rest of the release, and depends on nothing else of it', () => {
    const job = named('Job', 'migrate') as Manifest;
    const readHook = ({ metadata }: Manifest) => metadata.annotations?.['argocd.argoproj.io/hook'];
    expect(readHook(job)).toBe(overlay === 'development' ? 'Sync' : 'PreSync');
    expect(readHook(named('ServiceAccount', job.spec.template.spec.serviceAccountName) as Manifest)).toBe(
      'PreSync',
    );
    for (const container of containersOf(job.spec.template)) {
      expect(container.envFrom).toBeUndefined();
      expect(JSON.stringify(container.env)).not.toContain('valueFrom');
    }
    expect(job.spec.template.spec.volumes.map(({ secret }: Manifest) => secret?.secretName)).toEqual([
      'runhook',
    ]);
  });

  test('every config map, secret, key and service account that a pod uses exists', () => {
    for (const { template } of templates) {
      const { serviceAccountName, volumes = [] } = template.spec;
      if (serviceAccountName !== undefined) expect(named('ServiceAccount', serviceAccountName)).toBeDefined();
      for (const { envFrom = [] } of containersOf(template)) {
        for (const { configMapRef } of envFrom) expect(named('ConfigMap', configMapRef.name)).toBeDefined();
      }
      const secrets = volumes.filter(({ secret }: Manifest) => secret !== undefined);
      for (const { secret } of secrets) {
        const keys = SECRETS[secret.secretName];
        expect([secret.secretName, keys !== undefined]).toEqual([secret.secretName, true]);
        for (const { key } of secret.items ?? []) expect(keys).toContain(key);
      }
      const mounted = containersOf(template).flatMap(({ volumeMounts = [] }) => volumeMounts);
      const claims = template === null ? [] : ['data'];
      const volumeNames = [...volumes.map(({ name }: { name: string }) => name), ...claims];
      for (const { name } of mounted) expect(volumeNames).toContain(name);
    }
    expect(ofKind('Secret')).toEqual([]);
  });

  test('every file that a variable names is mounted from the secret', () => {
    for (const { template } of templates) {
      for (const { env = [], volumeMounts = [] } of containersOf(template)) {
        for (const { name, value } of env as { name: string; value: string }[]) {
          if (!name.endsWith('_FILE')) continue;
          const mount = volumeMounts.find(({ mountPath }: Manifest) => value.startsWith(`${mountPath}/`));
          const volume = template.spec.volumes.find((candidate: Manifest) => candidate.name === mount?.name);
          const keys = SECRETS[volume?.secret.secretName] ?? [];
          const paths = volume?.secret.items?.map(({ path }: { path: string }) => path) ?? keys;
          expect(paths).toContain(value.slice(mount.mountPath.length + 1));
        }
      }
    }
  });

  test('the scaler scales an existing deployment between limits by the age and the depth of the backlog', () => {
    const scalers = [...ofKind('ScaledObject'), ...ofKind('HorizontalPodAutoscaler')];
    expect(scalers).toHaveLength(overlay === 'development' ? 0 : 1);
    const scaled = scalers.map(({ spec }) => spec.scaleTargetRef.name);
    for (const { metadata, spec } of ofKind('Deployment')) {
      // Every apply would reset a number of replicas that the scaler controls.
      const isScaled = scaled.includes(metadata.name);
      expect([metadata.name, typeof spec.replicas]).toEqual([
        metadata.name,
        isScaled ? 'undefined' : 'number',
      ]);
    }
    for (const { kind, spec } of scalers) {
      expect(named('Deployment', spec.scaleTargetRef.name)).toBeDefined();
      const [least, most] =
        kind === 'ScaledObject'
          ? [spec.minReplicaCount, spec.maxReplicaCount]
          : [spec.minReplicas, spec.maxReplicas];
      expect(least).toBeGreaterThanOrEqual(2);
      expect(most).toBeGreaterThan(least);
      const text = JSON.stringify(spec);
      expect(text).toContain('runhook_backlog_oldest_due_age_seconds');
      expect(text).toContain('runhook_backlog_jobs');
    }
  });

  test('every pod complies with the restricted Pod Security Standard, and has a read-only root', () => {
    for (const { template } of templates) {
      const { spec } = template;
      expect(spec).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      });
      expect(spec.securityContext.runAsUser).toBeGreaterThan(0);
      for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) expect(spec[field]).toBeUndefined();
      for (const container of containersOf(template)) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources.requests).toMatchObject({
          cpu: expect.anything(),
          memory: expect.anything(),
        });
        expect(container.resources.limits.memory).toBeDefined();
        expect(container.image).toMatch(/^[^:]+:(?!latest$)[\w.-]+$/);
      }
    }
    for (const { metadata } of ofKind('Namespace')) {
      expect(metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    }
  });

  test('a service has time to finish its work in flight, and is updated without downtime', () => {
    const [config] = ofKind('ConfigMap');
    const budgetSeconds = Number(config?.data.DELIVERY_TIMEOUT_MS) / 1_000 + 15;
    for (const name of ['management', 'dispatcher']) {
      const { spec } = named('Deployment', name) as Manifest;
      const preStopSeconds = name === 'management' ? 5 : 0;
      expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(
        budgetSeconds + preStopSeconds,
      );
      expect(spec.template.spec.containers[0]).toMatchObject({
        livenessProbe: { httpGet: { path: '/healthz' } },
        readinessProbe: { httpGet: { path: '/readyz' } },
      });
      expect(named('PodDisruptionBudget', name)).toBeDefined();
    }
    expect(named('Deployment', 'management')?.spec.strategy.rollingUpdate.maxUnavailable).toBe(0);
  });

  test('the dispatcher may connect to public addresses, except those that its address guard forbids', () => {
    const world = named('NetworkPolicy', 'endpoints')?.spec.egress[0].to.map(
      ({ ipBlock }: Manifest) => ipBlock,
    );
    expect(world).toEqual([
      { cidr: '0.0.0.0/0', except: [...forbiddenIpv4] },
      { cidr: '2000::/3', except: forbiddenIpv6.filter((range) => /^[23]/.test(range)) },
    ]);
    expect(named('NetworkPolicy', 'deny-all')?.spec).toEqual({
      podSelector: {},
      policyTypes: ['Ingress', 'Egress'],
    });
    const dispatcher = named('Deployment', 'dispatcher')?.spec.template.metadata.labels;
    const entrances = ofKind('NetworkPolicy').filter(
      ({ spec }) => spec.ingress !== undefined && selects(spec.podSelector, dispatcher),
    );
    expect(entrances.map(({ metadata }) => metadata.name)).toEqual(['metrics']);
  });

  test('the images are targets of the Dockerfile', () => {
    const dockerfile = readFileSync(join(checkout, 'Dockerfile'), 'utf8');
    const ours = templates.flatMap(({ template }) =>
      containersOf(template).map(({ image }) => image as string),
    );
    const from = overlay === 'development' ? 'runhook/' : 'ghcr.io/runhook/runhook/';
    const targets = ours
      .filter((image) => image.startsWith(from))
      .map((image) => image.slice(from.length).replace(/:.*/, ''));
    expect(targets.sort()).toEqual(['dispatcher', 'management', 'migrate']);
    for (const target of targets) expect(dockerfile).toMatch(new RegExp(`^FROM runtime AS ${target}$`, 'm'));
  });
});
