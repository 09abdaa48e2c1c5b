/** Maps the groups of docs/proofs.md to their paths, which several proofs cover. */
export const GROUPS = {
  record: ['prisma', 'packages/database/src'],
  statements: [
    'services/dispatcher/src/record',
    'services/dispatcher/src/maintenance',
    'services/dispatcher/src/telemetry/backlog.ts',
    'services/management/src/http/idempotency.ts',
    'services/migrate/src',
    'packages/artifacts/src/table-store.ts',
    ...[
      'artifacts',
      'audit',
      'deliveries',
      'feed',
      'identity',
      'jobs',
      'runs',
      'sessions',
      'subscriptions',
    ].map((feature) => `services/management/src/${feature}`),
  ],
  delivery: [
    ...['contract', 'egress', 'publisher', 'queue', 'runtime'].map((name) => `packages/${name}/src`),
    'services/dispatcher/src',
    'services/management/src/runs',
  ],
};

const topology = (name, what) => [
  `chaos ${name}`,
  {
    command: `npm run chaos -- --topology ${name}`,
    shows: `the ledger balances while ${what}`,
    covers: ['delivery', 'record', 'e2e/chaos'],
  },
];

/**
 * The proofs that `npm test` does not contain, because they take long or need programs that few machines have. `covers` names
 * groups and paths, as git takes them: a change to one of them makes the proof stale.
 *
 * @type {Record<string, { command: string, shows: string, covers: string[] }>}
 */
export const PROOFS = {
  'citus core': {
    command: 'npm run prove -- citus --bin <folder> --only core',
    shows: 'the tests of the log pass on Citus',
    covers: ['record', 'statements', 'packages/testing/src/citus-cluster.ts'],
  },
  'citus story': {
    command: 'npm run prove -- citus --bin <folder> --only story',
    shows: 'the ledger balances while a worker of Citus is killed',
    covers: ['delivery', 'record', 'statements', 'packages/testing/src/citus-cluster.ts', 'e2e/citus'],
  },
  clients: {
    command: 'npm run prove -- clients',
    shows:
      'generated clients, and unmodified ones of the API family, call the services ([clients](clients.md))',
    covers: [
      'services/management/src/*openapi*',
      'e2e/clients',
      ...['audit', 'http', 'identity', 'jobs', 'runs'].map((feature) => `services/management/src/${feature}`),
    ],
  },
  schema: {
    command: 'npm run prove -- schema',
    shows: 'every response to the requests of schemathesis is as documented',
    covers: ['services/management/src', 'e2e/schema', 'e2e/attack/fuzz/world.ts'],
  },
  chart: {
    command: 'npm run prove -- chart',
    shows: 'the Helm chart renders the same manifests as the overlays',
    covers: ['k8s', 'e2e/deploy/chart.test.ts'],
  },
  image: {
    command: 'npm run prove -- image',
    shows: 'the images build, start without root and deliver',
    covers: [
      ...['Dockerfile', '.dockerignore', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', 'scripts/src/image'],
      ...['client-api', 'migration-names', 'prune-image', 'service-bundle'].map(
        (name) => `scripts/build/${name}.mjs`,
      ),
    ],
  },
  dashboard: {
    command: 'npm run prove -- dashboard',
    shows: 'every query of the dashboard returns data under load',
    covers: [
      'k8s/monitoring',
      'packages/runtime/src',
      'services/dispatcher/src/telemetry',
      'services/management/src/metrics.ts',
      'e2e/observability',
    ],
  },
  matrix: {
    command: 'npm run prove -- matrix',
    shows: 'the core tests pass on each supported Node, PostgreSQL and queue server',
    covers: [
      'delivery',
      'record',
      ...[
        'packages/embedded/src',
        'services/migrate/src',
        'scripts/prove/tested-versions.json',
        'pnpm-lock.yaml',
      ],
    ],
  },
  chaos: {
    command: 'npm run chaos',
    shows: 'the ledger balances after each fault on both queues',
    covers: ['delivery', 'record', 'e2e/chaos'],
  },
  ...Object.fromEntries([
    topology('sentinel', 'Sentinel promotes a replica of Redis'),
    topology('cluster', 'Redis Cluster loses a master or moves a slot'),
    topology('partition', 'the network is cut between the servers'),
    topology('postgres', 'a standby of PostgreSQL is promoted'),
    topology('shards', 'the shards of the queue lose a master or change in number'),
  ]),
  upgrade: {
    command: 'npm run upgrade',
    shows: 'an upgrade under load and its reversal lose and repeat nothing',
    covers: ['delivery', 'record', 'services/migrate/src', 'e2e/chaos'],
  },
  'upgrade stop': {
    command: 'npm run upgrade -- --stop',
    shows: 'the upgrade that requires a stop loses nothing',
    covers: ['delivery', 'record', 'services/migrate/src', 'e2e/chaos'],
  },
  attack: {
    command: 'npm run attack',
    shows: 'no hostile request or endpoint causes an unexpected response, a leak or a crash',
    covers: ['delivery', 'record', 'services/management/src', 'e2e/attack'],
  },
  simulation: {
    command: 'npm run bench -- simulate --against-bench',
    shows: 'the simulator is within 20 % of the benchmark',
    covers: ['delivery', 'record', 'bench/simulate', 'bench/src/simulate'],
  },
};

/** Returns the paths that a proof covers, with those of its groups. */
export function pathsOf({ covers }) {
  return [...new Set(covers.flatMap((name) => GROUPS[name] ?? [name]))];
}
