import { parseEncryptionKeys } from '@runhook/database';
import { type PortRange, parseCidrs, parsePorts } from '@runhook/egress';
import { EnvironmentError, environmentRules, parseEnvironment } from '@runhook/runtime';
import Joi from 'joi';
import { type Finding, failed, ok } from './finding.ts';
import { examineEgress, examineService } from './network.ts';
import { examineDatabase, examineQueue, examineReplica } from './stores.ts';

export { type Finding, findingsText, type Verdict } from './finding.ts';

export interface DoctorOptions {
  /** What the services are told by theirs: `DATABASE_URL`, `DATABASE_REPLICA_URL`, `QUEUE_URL`, `ENCRYPTION_KEYS`, `EGRESS_…`. */
  env: NodeJS.ProcessEnv;
  /** Where clients reach the service. */
  serviceUrl?: string | undefined;
  token?: string | undefined;
  /** A URL that deliveries go to. */
  endpoint?: string | undefined;
  /** Of each look; default 5,000. */
  timeoutMs?: number;
  /** Milliseconds since the epoch; the clock when omitted. */
  now?: () => number;
}

const { parsedBy, postgresUrl, wholeNumber } = environmentRules;

/** Each by itself: one that is wrong keeps none of the others from being looked at. */
const RULES: Readonly<Record<string, Joi.Schema>> = {
  DATABASE_URL: postgresUrl(),
  DATABASE_REPLICA_URL: postgresUrl(),
  QUEUE_URL: Joi.string().pattern(
    /^(rediss?(\+(cluster|sentinel))?|postgres(ql)?):\/\//,
    'redis:// or postgres:// URL',
  ),
  ENCRYPTION_KEYS: parsedBy(parseEncryptionKeys),
  EGRESS_ALLOW_CIDRS: parsedBy(parseCidrs),
  EGRESS_DENY_CIDRS: parsedBy(parseCidrs),
  EGRESS_PORTS: parsedBy(parsePorts),
  LOG_RETENTION_DAYS: wholeNumber(1, 3_650),
};

const RETENTION_DAYS = 30;
const TIMEOUT_MS = 5_000;

/**
 * Looks at all that an installation depends on, and says of each what is wrong and what to do. Changes nothing, and sends
 * nothing to an endpoint. Never rejects for what it finds.
 */
export async function* examine(options: DoctorOptions): AsyncGenerator<Finding> {
  const { env, serviceUrl, token, endpoint, timeoutMs = TIMEOUT_MS, now = Date.now } = options;
  const { values, problems } = readSettings(env);
  yield problems.length === 0
    ? ok('settings', 'can be read')
    : failed(
        'settings',
        problems.join('; '),
        'Put it right in the environment of the services: docs/configuration.md.',
      );
  const stores = {
    databaseUrl: values.DATABASE_URL as string | undefined,
    replicaUrl: values.DATABASE_REPLICA_URL as string | undefined,
    queueUrl: values.QUEUE_URL as string | undefined,
    encryptionKeys: values.ENCRYPTION_KEYS as ReturnType<typeof parseEncryptionKeys> | undefined,
    logRetentionDays: (values.LOG_RETENTION_DAYS as number | undefined) ?? RETENTION_DAYS,
    now,
    timeoutMs,
  };
  yield* guarded('database', examineDatabase(stores));
  yield* guarded('replica', examineReplica(stores));
  yield* guarded('queue', examineQueue(stores));
  const rules = {
    allowCidrs: (values.EGRESS_ALLOW_CIDRS as string[] | undefined) ?? [],
    denyCidrs: (values.EGRESS_DENY_CIDRS as string[] | undefined) ?? [],
    ports: (values.EGRESS_PORTS as PortRange[] | undefined) ?? [],
  };
  yield await examineEgress(rules, endpoint, timeoutMs);
  yield* examineService(serviceUrl, token, timeoutMs);
}

/** What a look did not foresee, such as a permission that is missing, is a finding as well. */
async function* guarded(check: string, findings: AsyncGenerator<Finding>): AsyncGenerator<Finding> {
  try {
    yield* findings;
  } catch (error) {
    const { code = 'fault' } = error as { code?: string };
    yield failed(
      check,
      `could not be looked at any further (${code})`,
      'May the user in its URL read all that is there?',
    );
  }
}

function readSettings(env: NodeJS.ProcessEnv): { values: Record<string, unknown>; problems: string[] } {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, rule] of Object.entries(RULES)) {
    try {
      Object.assign(values, parseEnvironment(Joi.object({ [name]: rule }), env));
    } catch (error) {
      if (!(error instanceof EnvironmentError)) throw error;
      problems.push(...error.problems);
    }
  }
  return { values, problems };
}
