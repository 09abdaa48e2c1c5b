import { SHARDS_MAX } from '@runhook/contract';
import { type EncryptionKey, parseEncryptionKeys } from '@runhook/database';
import { type PortRange, parseCidrs, parsePorts } from '@runhook/egress';
import { parseShards, queueBackendName } from '@runhook/queue';
import { environmentRules, parseSettings, type SettingsOf } from '@runhook/runtime';
import Joi from 'joi';

const { flag, host, httpUrl, logLevel, parsedBy, port, postgresUrl, wholeNumber } = environmentRules;

/** What the service reads from its environment (docs/configuration.md). */
interface Environment {
  DATABASE_URL: string;
  QUEUE_URL: string;
  /** Parts that the accounts' jobs are spread over; as they are without it. */
  QUEUE_SHARDS?: number;
  /** Those that this process works on; all without it. */
  DISPATCHER_SHARDS?: number[];
  /** Newest first. */
  ENCRYPTION_KEYS: EncryptionKey[];
  /** Of the probes and metrics; 0 takes a free one. */
  PORT: number;
  HOST: string;
  DELIVERY_TIMEOUT_MS: number;
  /** Retries after the first attempt of a cycle. */
  DELIVERY_MAX_RETRIES: number;
  RETRY_BASE_DELAY_MS: number;
  /** Jobs that each worker has in flight at a time. */
  DELIVERY_CONCURRENCY: number;
  /** Beyond it, lanes that hold more than their share take no more. */
  PENDING_DELIVERIES_PER_ACCOUNT: number;
  LOG_RETENTION_DAYS: number;
  RUN_RETENTION_DAYS: number;
  /** Failed attempts in a row, and days of them, after which a subscription is made inactive; off without both. */
  DEACTIVATE_AFTER_FAILURES?: number;
  DEACTIVATE_AFTER_DAYS?: number;
  /** Where e-mail about failing subscriptions goes out, and from whom; off without it. */
  SMTP_URL?: string;
  MAIL_FROM?: string;
  /** Ranges opened beside the public addresses. */
  EGRESS_ALLOW_CIDRS: string[];
  /** Ranges closed whatever is opened. */
  EGRESS_DENY_CIDRS: string[];
  /** Empty: all. */
  EGRESS_PORTS: PortRange[];
  LOG_LEVEL: string;
  /** Traces are exported there; off without it. The SDK reads it, with the other `OTEL_…` variables. */
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string;
  /** Whether endpoints are sent `traceparent`. */
  TRACE_PROPAGATE_TO_ENDPOINTS?: boolean;
}

export type DispatcherSettings = SettingsOf<Environment>;

export const SECRET_SETTINGS = ['encryptionKeys', 'smtpUrl'] as const satisfies (keyof DispatcherSettings)[];

const ON_POSTGRES = Joi.string()
  .pattern(/^postgres/)
  .required();
const NOT_DIVIDED =
  'a queue in PostgreSQL has one shard, for all of them would share the server that is its bound';

const schema = Joi.object<Environment>({
  DATABASE_URL: postgresUrl().required(),
  QUEUE_URL: parsedBy((url) => queueBackendName(url) && url).required(),
  QUEUE_SHARDS: wholeNumber(1, SHARDS_MAX).when('QUEUE_URL', {
    is: ON_POSTGRES,
    // biome-ignore lint/suspicious/noThenProperty: Joi's own word
    then: Joi.number()
      .max(1)
      .messages({ 'number.max': `{{#label}} must be 1: ${NOT_DIVIDED}` }),
  }),
  DISPATCHER_SHARDS: parsedBy(parseShards).when('QUEUE_URL', {
    is: ON_POSTGRES,
    // biome-ignore lint/suspicious/noThenProperty: Joi's own word
    then: Joi.forbidden().messages({ 'any.unknown': `{{#label}} must not be set: ${NOT_DIVIDED}` }),
  }),
  ENCRYPTION_KEYS: parsedBy(parseEncryptionKeys).required(),
  PORT: port().default(3_001),
  HOST: host().default('0.0.0.0'),
  DELIVERY_TIMEOUT_MS: wholeNumber(100, 120_000).default(10_000),
  DELIVERY_MAX_RETRIES: wholeNumber(0, 20).default(5),
  RETRY_BASE_DELAY_MS: wholeNumber(1, 3_600_000).default(30_000),
  DELIVERY_CONCURRENCY: wholeNumber(1, 10_000).default(384),
  PENDING_DELIVERIES_PER_ACCOUNT: wholeNumber(1, 1_000_000).default(100_000),
  LOG_RETENTION_DAYS: wholeNumber(1, 3_650).default(30),
  RUN_RETENTION_DAYS: wholeNumber(1, 36_500).default(365),
  DEACTIVATE_AFTER_FAILURES: wholeNumber(1, 1_000_000),
  DEACTIVATE_AFTER_DAYS: wholeNumber(1, 365),
  SMTP_URL: Joi.string().uri({ scheme: ['smtp', 'smtps'] }),
  MAIL_FROM: Joi.string()
    .max(320)
    .pattern(/^[^\r\n]+@[^\r\n]+$/, 'e-mail address')
    .when('SMTP_URL', {
      is: Joi.exist(),
      // biome-ignore lint/suspicious/noThenProperty: Joi's own word
      then: Joi.required(),
    }),
  EGRESS_ALLOW_CIDRS: parsedBy(parseCidrs).default([]),
  EGRESS_DENY_CIDRS: parsedBy(parseCidrs).default([]),
  EGRESS_PORTS: parsedBy(parsePorts).default([]),
  LOG_LEVEL: logLevel().default('info'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl(),
  TRACE_PROPAGATE_TO_ENDPOINTS: flag(),
});

/** Throws an `EnvironmentError` with every problem at once. */
export function readSettings(source?: NodeJS.ProcessEnv): DispatcherSettings {
  return parseSettings(schema, source);
}
