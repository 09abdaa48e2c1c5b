import { parseEncryptionKeys } from '@runhook/database';
import { type PortRange, parseCertificate, parseCidrs, parseClientKey, parsePorts } from '@runhook/egress';
import { EnvironmentError, environmentRules, parseEnvironment } from '@runhook/runtime';
import Joi from 'joi';
import { type Finding, failed, ok } from './finding.ts';
import { examineIdentityProvider } from './identity-provider.ts';
import { examineEgress, examineProxies, examineService } from './network.ts';
import { examineDatabase, examineQueue, examineReplica } from './stores.ts';

export { type Finding, type FindingStatus, findingsText } from './finding.ts';

export interface DoctorOptions {
  /**
   * The environment of the services: `DATABASE_URL`, `DATABASE_REPLICA_URL`, `QUEUE_URL`, `ENCRYPTION_KEYS`,
   * `EGRESS_…`, `TRUSTED_PROXY_CIDRS`, `OIDC_ISSUER`.
   */
  env: NodeJS.ProcessEnv;
  /** URL at which clients reach the service. */
  serviceUrl?: string | undefined;
  token?: string | undefined;
  /** The URL of an endpoint for deliveries. */
  endpoint?: string | undefined;
  /** Time limit of each connection and HTTP request; default 5,000. */
  timeoutMs?: number;
  /** Returns milliseconds since the epoch; default: the system clock. */
  now?: () => number;
}

const { flag, httpUrl, parsedBy, postgresUrl, integer } = environmentRules;

/** Variables are validated one by one, so that an invalid one does not prevent the checks of the others. */
const SETTING_RULES: Readonly<Record<string, Joi.Schema>> = {
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
  EGRESS_REQUIRE_HTTPS: flag(),
  EGRESS_CLIENT_CERT: parsedBy(parseCertificate),
  EGRESS_CLIENT_KEY: parsedBy((key) => parseClientKey(key, undefined)),
  EGRESS_SOURCE_ADDRESSES: parsedBy(parseCidrs),
  TRUSTED_PROXY_CIDRS: parsedBy(parseCidrs),
  LOG_RETENTION_DAYS: integer(1, 3_650),
  OIDC_ISSUER: httpUrl(),
};

const RETENTION_DAYS = 30;
const TIMEOUT_MS = 5_000;

/**
 * Checks everything that an installation depends on, and yields a finding with the recommended action for each. Changes
 * nothing and sends nothing to an endpoint. Problems of the installation never make it reject.
 */
export async function* runChecks(options: DoctorOptions): AsyncGenerator<Finding> {
  const { env, serviceUrl, token, endpoint, timeoutMs = TIMEOUT_MS, now = Date.now } = options;
  const { values, problems } = readSettings(env);
  yield problems.length === 0
    ? ok('settings', 'are valid')
    : failed(
        'settings',
        problems.join('; '),
        'Correct the environment of the services: docs/configuration.md.',
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
  yield* withFailureFinding('database', examineDatabase(stores));
  yield* withFailureFinding('replica', examineReplica(stores));
  yield* withFailureFinding('queue', examineQueue(stores));
  const rules = {
    allowCidrs: (values.EGRESS_ALLOW_CIDRS as string[] | undefined) ?? [],
    denyCidrs: (values.EGRESS_DENY_CIDRS as string[] | undefined) ?? [],
    ports: (values.EGRESS_PORTS as PortRange[] | undefined) ?? [],
    requireHttps: values.EGRESS_REQUIRE_HTTPS === true,
  };
  yield await examineEgress(rules, endpoint, timeoutMs);
  yield examineProxies((values.TRUSTED_PROXY_CIDRS as string[] | undefined) ?? []);
  const issuer = values.OIDC_ISSUER as string | undefined;
  if (issuer !== undefined) yield await examineIdentityProvider(issuer, timeoutMs);
  yield* examineService(serviceUrl, token, timeoutMs);
}

/** Converts an unexpected error of a check, such as a missing permission, to a finding. */
async function* withFailureFinding(
  check: string,
  findings: AsyncGenerator<Finding>,
): AsyncGenerator<Finding> {
  try {
    yield* findings;
  } catch (error) {
    const { code = 'unhandled_error' } = error as { code?: string };
    yield failed(
      check,
      `could not be checked completely (${code})`,
      'Check the permissions of the user in its URL.',
    );
  }
}

function readSettings(env: NodeJS.ProcessEnv): { values: Record<string, unknown>; problems: string[] } {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, rule] of Object.entries(SETTING_RULES)) {
    try {
      Object.assign(values, parseEnvironment(Joi.object({ [name]: rule }), env));
    } catch (error) {
      if (!(error instanceof EnvironmentError)) throw error;
      problems.push(...error.problems);
    }
  }
  return { values, problems };
}
