import { parseEncryptionKeys } from '@runhook/database';
import { queueBackendName } from '@runhook/queue';

/** Reports a start that cannot continue, with a message that needs no stack. */
export class StartFailed extends Error {
  override readonly name = 'StartFailed';
}

/** The variables that `npm start` itself uses. The services read the others (docs/configuration.md). */
export interface StartSettings {
  databaseUrl: string | null;
  logRetentionDays: number;
  queueUrl: string | null;
  encryptionKeys: string | null;
  /** Preferred port of management. */
  port: number;
  retryBaseDelayMs: number;
  retriesMax: number;
  deliveryTimeoutMs: number;
  /** Variables that the services get from here unless they are set. */
  defaults: { RETRY_BASE_DELAY_MS: string; EGRESS_ALLOW_CIDRS: string };
}

/** Default settings of the services: retries are short enough to watch, and loopback is permitted for the demo receiver. */
const DEFAULTS = { RETRY_BASE_DELAY_MS: '1000', EGRESS_ALLOW_CIDRS: '127.0.0.0/8,::1/128' };

/**
 * Reads the settings. An empty variable counts as unset. The services check the variables that are not used here.
 *
 * @throws {StartFailed} with all problems
 */
export function readSettings(environment: NodeJS.ProcessEnv): StartSettings {
  const databaseUrl = environment.DATABASE_URL || null;
  const queueUrl = environment.QUEUE_URL || null;
  const encryptionKeys = environment.ENCRYPTION_KEYS || null;
  const port = Number(environment.PORT || '3000');
  const defaults = {
    RETRY_BASE_DELAY_MS: environment.RETRY_BASE_DELAY_MS || DEFAULTS.RETRY_BASE_DELAY_MS,
    EGRESS_ALLOW_CIDRS: environment.EGRESS_ALLOW_CIDRS || DEFAULTS.EGRESS_ALLOW_CIDRS,
  };
  const problems = [
    ...(databaseUrl === null || /^postgres(ql)?:\/\/./.test(databaseUrl)
      ? []
      : ['DATABASE_URL must be postgres://…']),
    ...problemOf('QUEUE_URL', queueUrl, queueBackendName),
    ...problemOf('ENCRYPTION_KEYS', encryptionKeys, parseEncryptionKeys),
    ...(Number.isInteger(port) && port >= 0 && port <= 65_535 ? [] : ['PORT must be a port, 0 to 65535']),
  ];
  if (problems.length > 0) {
    throw new StartFailed(
      `The environment is not valid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
    );
  }
  return {
    databaseUrl,
    queueUrl,
    encryptionKeys,
    port,
    logRetentionDays: Number(environment.LOG_RETENTION_DAYS || '30'),
    retryBaseDelayMs: Number(defaults.RETRY_BASE_DELAY_MS),
    retriesMax: Number(environment.DELIVERY_MAX_RETRIES || '5'),
    deliveryTimeoutMs: Number(environment.DELIVERY_TIMEOUT_MS || '10000'),
    defaults,
  };
}

function problemOf(name: string, value: string | null, parse: (text: string) => unknown): string[] {
  try {
    if (value !== null) parse(value);
    return [];
  } catch (error) {
    return [`${name}: ${(error as Error).message}`];
  }
}
