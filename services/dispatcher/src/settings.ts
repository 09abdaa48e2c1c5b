import { type EncryptionKey, parseEncryptionKeys } from '@runhook/database';
import { parseCidrs } from '@runhook/egress';
import { queueBackendName } from '@runhook/queue';
import { parseEnvironment } from '@runhook/runtime';
import Joi from 'joi';

export interface DispatcherSettings {
  databaseUrl: string;
  queueUrl: string;
  encryptionKeys: EncryptionKey[];
  /** Of the probes and metrics. */
  port: number;
  host: string;
  deliveryTimeoutMs: number;
  deliveryMaxRetries: number;
  retryBaseDelayMs: number;
  deliveryConcurrency: number;
  logRetentionDays: number;
  egressAllowCidrs: string[];
  logLevel: string;
}

interface Environment {
  DATABASE_URL: string;
  QUEUE_URL: string;
  ENCRYPTION_KEYS: EncryptionKey[];
  PORT: number;
  HOST: string;
  DELIVERY_TIMEOUT_MS: number;
  DELIVERY_MAX_RETRIES: number;
  RETRY_BASE_DELAY_MS: number;
  DELIVERY_CONCURRENCY: number;
  LOG_RETENTION_DAYS: number;
  EGRESS_ALLOW_CIDRS: string[];
  LOG_LEVEL: string;
}

/** Makes a reader that throws into a Joi rule: its sentence becomes the problem, without the value. */
const readWith = (read: (text: string) => unknown) =>
  Joi.string().custom((text: string, helpers) => {
    try {
      return read(text);
    } catch (error) {
      return helpers.message({
        custom: `{{#label}}: ${error instanceof Error ? error.message : 'is not valid'}`,
      });
    }
  });

const environmentSchema = Joi.object<Environment>({
  DATABASE_URL: Joi.string()
    .uri({ scheme: ['postgres', 'postgresql'] })
    .required(),
  QUEUE_URL: readWith((url) => queueBackendName(url) && url).required(),
  ENCRYPTION_KEYS: readWith(parseEncryptionKeys).required(),
  PORT: Joi.number().integer().min(0).max(65_535).default(3001),
  HOST: Joi.string().default('0.0.0.0'),
  DELIVERY_TIMEOUT_MS: Joi.number().integer().min(1).default(10_000),
  DELIVERY_MAX_RETRIES: Joi.number().integer().min(0).max(20).default(5),
  RETRY_BASE_DELAY_MS: Joi.number().integer().min(1).default(30_000),
  DELIVERY_CONCURRENCY: Joi.number().integer().min(1).default(256),
  LOG_RETENTION_DAYS: Joi.number().integer().min(1).default(30),
  EGRESS_ALLOW_CIDRS: readWith(parseCidrs).allow('').empty('').default([]),
  LOG_LEVEL: Joi.string().valid('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent').default('info'),
});

/** The dispatcher's settings; throws one error that lists every problem of the environment. */
export function readSettings(source?: NodeJS.ProcessEnv): DispatcherSettings {
  const environment = parseEnvironment<Environment>(environmentSchema, source);
  return {
    databaseUrl: environment.DATABASE_URL,
    queueUrl: environment.QUEUE_URL,
    encryptionKeys: environment.ENCRYPTION_KEYS,
    port: environment.PORT,
    host: environment.HOST,
    deliveryTimeoutMs: environment.DELIVERY_TIMEOUT_MS,
    deliveryMaxRetries: environment.DELIVERY_MAX_RETRIES,
    retryBaseDelayMs: environment.RETRY_BASE_DELAY_MS,
    deliveryConcurrency: environment.DELIVERY_CONCURRENCY,
    logRetentionDays: environment.LOG_RETENTION_DAYS,
    egressAllowCidrs: environment.EGRESS_ALLOW_CIDRS,
    logLevel: environment.LOG_LEVEL,
  };
}
