import { type ArtifactsLocation, parseArtifactsUrl } from '@runhook/artifacts';
import { SHARDS_MAX } from '@runhook/contract';
import { type EncryptionKey, parseEncryptionKeys } from '@runhook/database';
import { type PortRange, parseCertificate, parseCidrs, parseClientKey, parsePorts } from '@runhook/egress';
import { parseShards, queueBackendName, queueUrlWithLogin } from '@runhook/queue';
import { environmentRules, parseSettings, type SettingsOf } from '@runhook/runtime';
import Joi from 'joi';

const { flag, host, httpUrl, logLevel, parsedBy, port, postgresUrl, integer } = environmentRules;

/** Environment variables of the service (docs/configuration.md). */
interface Environment {
  DATABASE_URL: string;
  QUEUE_URL: string;
  /** Number of shards of the queue, over which the accounts are distributed; unchanged when omitted. */
  QUEUE_SHARDS?: number;
  /** Shards that this process works on; all when omitted. */
  DISPATCHER_SHARDS?: number[];
  /** Newest first. */
  ENCRYPTION_KEYS: EncryptionKey[];
  /** Port of the probes and metrics; 0 selects a free one. */
  PORT: number;
  HOST: string;
  DELIVERY_TIMEOUT_MS: number;
  /** Maximum number of retries in a cycle. */
  DELIVERY_MAX_RETRIES: number;
  RETRY_BASE_DELAY_MS: number;
  /** Maximum number of jobs in flight of each queue in this process, over all shards. */
  DELIVERY_CONCURRENCY: number;
  /** Deferred deliveries of an account above which its lanes with an equal share of this limit, or more, are full. */
  PENDING_DELIVERIES_PER_ACCOUNT: number;
  /** Maximum size of the compressed steps of an account's runs in bytes. Must be the same for both services. */
  RUN_STEPS_BYTES_PER_ACCOUNT: number;
  LOG_RETENTION_DAYS: number;
  RUN_RETENTION_DAYS: number;
  /** Days after the start of a run for which its artifacts and models are retained. */
  ARTIFACT_RETENTION_DAYS: number;
  /** Store of artifacts, which must be management's setting; a table of the database when omitted. */
  ARTIFACTS_URL?: ArtifactsLocation;
  /** URL of an S3-compatible server other than AWS. */
  ARTIFACTS_S3_ENDPOINT?: string;
  ARTIFACTS_S3_REGION?: string;
  /** Consecutive failed attempts, and days of failures, that deactivate a subscription; both, if both are set. */
  DEACTIVATE_AFTER_FAILURES?: number;
  DEACTIVATE_AFTER_DAYS?: number;
  /** SMTP server and sender of e-mail about failing subscriptions; off when omitted. */
  SMTP_URL?: string;
  MAIL_FROM?: string;
  /** Address ranges of endpoints that are permitted in addition to public addresses. */
  EGRESS_ALLOW_CIDRS: string[];
  /** Address ranges that are always denied. */
  EGRESS_DENY_CIDRS: string[];
  /** Permitted ports of endpoints; all when empty. */
  EGRESS_PORTS: PortRange[];
  /** Whether endpoints must be called over https. */
  EGRESS_REQUIRE_HTTPS: boolean;
  /** PEM certificate and its key, for endpoints that request one. */
  EGRESS_CLIENT_CERT?: string;
  EGRESS_CLIENT_KEY?: string;
  /** Address of the console, for links in messages; no links when omitted. */
  PUBLIC_URL?: string;
  LOG_LEVEL: string;
  /** Destination of exported traces; off when omitted. The SDK reads it, with the other `OTEL_…` variables. */
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string;
  /** Whether requests to endpoints contain `traceparent`. */
  TRACE_PROPAGATE_TO_ENDPOINTS?: boolean;
}

export type DispatcherSettings = SettingsOf<Environment>;

export const SECRET_SETTINGS = [
  'encryptionKeys',
  'smtpUrl',
  'egressClientCert',
  'egressClientKey',
] as const satisfies (keyof DispatcherSettings)[];

const ON_POSTGRES = Joi.string()
  .pattern(/^postgres/)
  .required();
const NOT_DIVIDED = 'a queue in PostgreSQL has one shard, because all shards would be on the same server';

const schema = Joi.object<Environment>({
  DATABASE_URL: postgresUrl().required(),
  QUEUE_URL: parsedBy((url) => queueBackendName(url) && url).required(),
  QUEUE_SHARDS: integer(1, SHARDS_MAX).when('QUEUE_URL', {
    is: ON_POSTGRES,
    // biome-ignore lint/suspicious/noThenProperty: Joi's keyword
    then: Joi.number()
      .max(1)
      .messages({ 'number.max': `{{#label}} must be 1: ${NOT_DIVIDED}` }),
  }),
  DISPATCHER_SHARDS: parsedBy(parseShards).when('QUEUE_URL', {
    is: ON_POSTGRES,
    // biome-ignore lint/suspicious/noThenProperty: Joi's keyword
    then: Joi.forbidden().messages({ 'any.unknown': `{{#label}} must not be set: ${NOT_DIVIDED}` }),
  }),
  ENCRYPTION_KEYS: parsedBy(parseEncryptionKeys).required(),
  PORT: port().default(3_001),
  HOST: host().default('0.0.0.0'),
  DELIVERY_TIMEOUT_MS: integer(100, 120_000).default(10_000),
  DELIVERY_MAX_RETRIES: integer(0, 20).default(5),
  RETRY_BASE_DELAY_MS: integer(1, 3_600_000).default(30_000),
  DELIVERY_CONCURRENCY: integer(1, 10_000).default(384),
  PENDING_DELIVERIES_PER_ACCOUNT: integer(1, 1_000_000).default(100_000),
  RUN_STEPS_BYTES_PER_ACCOUNT: integer(0, 1_000_000_000_000).default(1_000_000_000),
  LOG_RETENTION_DAYS: integer(1, 3_650).default(30),
  RUN_RETENTION_DAYS: integer(1, 36_500).default(365),
  ARTIFACT_RETENTION_DAYS: integer(1, 36_500).default(30),
  ARTIFACTS_URL: parsedBy(parseArtifactsUrl),
  ARTIFACTS_S3_ENDPOINT: httpUrl(),
  ARTIFACTS_S3_REGION: Joi.string().max(64),
  DEACTIVATE_AFTER_FAILURES: integer(1, 1_000_000),
  DEACTIVATE_AFTER_DAYS: integer(1, 365),
  SMTP_URL: Joi.string().uri({ scheme: ['smtp', 'smtps'] }),
  MAIL_FROM: Joi.string()
    .max(320)
    .pattern(/^[^\r\n]+@[^\r\n]+$/, 'e-mail address')
    .when('SMTP_URL', {
      is: Joi.exist(),
      // biome-ignore lint/suspicious/noThenProperty: Joi's keyword
      then: Joi.required(),
    }),
  EGRESS_ALLOW_CIDRS: parsedBy(parseCidrs).default([]),
  EGRESS_DENY_CIDRS: parsedBy(parseCidrs).default([]),
  EGRESS_PORTS: parsedBy(parsePorts).default([]),
  EGRESS_REQUIRE_HTTPS: flag().default(false),
  EGRESS_CLIENT_CERT: parsedBy(parseCertificate),
  EGRESS_CLIENT_KEY: parsedBy((key, { EGRESS_CLIENT_CERT }) => parseClientKey(key, EGRESS_CLIENT_CERT)),
  PUBLIC_URL: httpUrl(),
  LOG_LEVEL: logLevel().default('info'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl(),
  TRACE_PROPAGATE_TO_ENDPOINTS: flag(),
}).and('EGRESS_CLIENT_CERT', 'EGRESS_CLIENT_KEY');

/** Reads the settings. Throws an `EnvironmentError` with all problems. */
export function readSettings(source?: NodeJS.ProcessEnv): DispatcherSettings {
  const settings = parseSettings(schema, source);
  return { ...settings, queueUrl: queueUrlWithLogin(settings.queueUrl, settings.databaseUrl) };
}
