import { type ArtifactsLocation, parseArtifactsUrl } from '@runhook/artifacts';
import { type EncryptionKey, parseEncryptionKeys } from '@runhook/database';
import { type PortRange, parseCertificate, parseCidrs, parseClientKey, parsePorts } from '@runhook/egress';
import { queueBackendName, queueUrlWithLogin } from '@runhook/queue';
import { environmentRules, parseSettings, type SettingsOf } from '@runhook/runtime';
import Joi from 'joi';
import { parseContacts } from './http/security-txt.ts';
import { issuerUrl } from './oidc/settings.ts';

const { flag, host, httpUrl, logLevel, parsedBy, port, postgresUrl, integer } = environmentRules;

/** Environment variables of the service (docs/configuration.md). */
interface Environment {
  DATABASE_URL: string;
  /** Streaming replica of the database, for reads that may lag. */
  DATABASE_REPLICA_URL?: string;
  /** Maximum lag at which the replica is read. */
  DATABASE_REPLICA_MAX_LAG_MS: number;
  QUEUE_URL: string;
  /** Newest key first. */
  ENCRYPTION_KEYS: EncryptionKey[];
  /** 0 selects a free port. */
  PORT: number;
  HOST: string;
  /** Port of the metrics and a second copy of the probes; must not be exposed. 0 selects a free port. */
  OPERATIONS_PORT: number;
  /** Timeout of the request that the test of an endpoint sends. */
  DELIVERY_TIMEOUT_MS: number;
  /** Number of retries after the first attempt of a redelivery. */
  DELIVERY_MAX_RETRIES: number;
  /** Address ranges of endpoints, allowed in addition to public ones. */
  EGRESS_ALLOW_CIDRS: string[];
  /** Address ranges of endpoints, denied even if EGRESS_ALLOW_CIDRS contains them. */
  EGRESS_DENY_CIDRS: string[];
  /** Allowed ports of endpoints; an empty list allows all. */
  EGRESS_PORTS: PortRange[];
  /** Whether endpoints must be called over https. */
  EGRESS_REQUIRE_HTTPS: boolean;
  /** PEM certificate and its key, for endpoints that request one. */
  EGRESS_CLIENT_CERT?: string;
  EGRESS_CLIENT_KEY?: string;
  /** Address ranges from which requests reach endpoints, for the firewalls of their owners. */
  EGRESS_SOURCE_ADDRESSES: string[];
  /** Requests that one account may send in a minute to all processes together. */
  API_RATE_LIMIT_PER_MINUTE: number;
  /** Requests of one account that a process has in flight at once, including those that wait for a slot. */
  API_CONCURRENCY_PER_ACCOUNT: number;
  SUBSCRIPTIONS_PER_ACCOUNT: number;
  JOBS_PER_ACCOUNT: number;
  /** Maximum size of the compressed steps of an account's runs in bytes. Must be the same for both services. */
  RUN_STEPS_BYTES_PER_ACCOUNT: number;
  /** Deliveries of an account that may wait in its lanes. Must be the dispatchers' setting. */
  PENDING_DELIVERIES_PER_ACCOUNT: number;
  /** Requests with an `Idempotency-Key` that one account may send in a day to all processes together. */
  IDEMPOTENCY_KEYS_PER_DAY: number;
  /** URIs in `/.well-known/security.txt`. */
  SECURITY_CONTACT: string[];
  /** Store of artifacts, which must be the dispatchers' setting; a table of the database when omitted. */
  ARTIFACTS_URL?: ArtifactsLocation;
  /** URL of an S3-compatible server other than AWS. */
  ARTIFACTS_S3_ENDPOINT?: string;
  ARTIFACTS_S3_REGION?: string;
  /** MiB that the artifacts of one account may take; 1,024 in the table and unlimited elsewhere when omitted. */
  ARTIFACTS_MB_PER_ACCOUNT?: number;
  /** Must be the dispatchers' setting: older event ids are rejected. */
  LOG_RETENTION_DAYS: number;
  /** Minutes without use after which a console session ends. */
  CONSOLE_SESSION_IDLE_MINUTES: number;
  /** Hours after which a console session ends even in use. */
  CONSOLE_SESSION_MAX_HOURS: number;
  /** Failed sign-ins within 15 minutes with one e-mail address from one network. */
  SIGN_IN_ATTEMPTS_PER_EMAIL: number;
  /** Failed sign-ins within 15 minutes from one IPv4 address or one IPv6 network of 64 bits. */
  SIGN_IN_ATTEMPTS_PER_ADDRESS: number;
  /** URL at which browsers open the console, with its path prefix. With https, cookies are `Secure` and bound to the host. */
  PUBLIC_URL?: string;
  /** Issuer of the OpenID Connect provider by which users sign in; without it there is no single sign-on. */
  OIDC_ISSUER?: string;
  OIDC_CLIENT_ID?: string;
  OIDC_CLIENT_SECRET?: string;
  /** Claim with the accounts and permission sets of a user; without it, operators manage memberships. */
  OIDC_CLAIM_ACCOUNTS?: string;
  /** Whether the first sign-in of an unknown user creates the user. */
  OIDC_CREATE_USERS: boolean;
  PASSWORD_SIGN_IN: 'on' | 'off';
  /** Proxies whose headers are trusted for the client's address and for https. */
  TRUSTED_PROXY_CIDRS: string[];
  LOG_LEVEL: string;
  /** Endpoint of the traces; none are exported without it or the next one. The SDK reads all `OTEL_…` variables. */
  OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string;
}

export type Settings = SettingsOf<Environment>;

export const SECRET_SETTINGS = [
  'encryptionKeys',
  'egressClientCert',
  'egressClientKey',
  'oidcClientSecret',
] as const satisfies (keyof Settings)[];

const schema = Joi.object<Environment>({
  DATABASE_URL: postgresUrl().required(),
  DATABASE_REPLICA_URL: postgresUrl(),
  DATABASE_REPLICA_MAX_LAG_MS: integer(500, 600_000).default(5_000),
  QUEUE_URL: parsedBy((url) => queueBackendName(url) && url).required(),
  ENCRYPTION_KEYS: parsedBy(parseEncryptionKeys).required(),
  PORT: port().default(3_000),
  HOST: host().default('0.0.0.0'),
  OPERATIONS_PORT: port().default(3_004),
  DELIVERY_TIMEOUT_MS: integer(100, 120_000).default(10_000),
  DELIVERY_MAX_RETRIES: integer(0, 20).default(5),
  EGRESS_ALLOW_CIDRS: parsedBy(parseCidrs).default([]),
  EGRESS_DENY_CIDRS: parsedBy(parseCidrs).default([]),
  EGRESS_PORTS: parsedBy(parsePorts).default([]),
  EGRESS_REQUIRE_HTTPS: flag().default(false),
  EGRESS_CLIENT_CERT: parsedBy(parseCertificate),
  EGRESS_CLIENT_KEY: parsedBy((key, { EGRESS_CLIENT_CERT }) => parseClientKey(key, EGRESS_CLIENT_CERT)),
  EGRESS_SOURCE_ADDRESSES: parsedBy(parseCidrs).default([]),
  API_RATE_LIMIT_PER_MINUTE: integer(1, 10_000_000).default(5_000),
  API_CONCURRENCY_PER_ACCOUNT: integer(1, 100_000).default(500),
  SUBSCRIPTIONS_PER_ACCOUNT: integer(1, 100_000).default(1_000),
  JOBS_PER_ACCOUNT: integer(1, 1_000_000).default(10_000),
  RUN_STEPS_BYTES_PER_ACCOUNT: integer(0, 1_000_000_000_000).default(1_000_000_000),
  PENDING_DELIVERIES_PER_ACCOUNT: integer(1, 1_000_000).default(100_000),
  IDEMPOTENCY_KEYS_PER_DAY: integer(1, 1_000_000_000).default(1_000_000),
  ARTIFACTS_URL: parsedBy(parseArtifactsUrl),
  ARTIFACTS_S3_ENDPOINT: httpUrl(),
  ARTIFACTS_S3_REGION: Joi.string().max(64),
  ARTIFACTS_MB_PER_ACCOUNT: integer(1, 1_000_000_000),
  SECURITY_CONTACT: parsedBy(parseContacts).default([]),
  LOG_RETENTION_DAYS: integer(1, 3_650).default(30),
  CONSOLE_SESSION_IDLE_MINUTES: integer(5, 43_200).default(60),
  CONSOLE_SESSION_MAX_HOURS: integer(1, 8_760).default(24),
  SIGN_IN_ATTEMPTS_PER_EMAIL: integer(1, 10_000).default(10),
  SIGN_IN_ATTEMPTS_PER_ADDRESS: integer(1, 1_000_000).default(100),
  PUBLIC_URL: httpUrl(),
  OIDC_ISSUER: parsedBy(issuerUrl),
  OIDC_CLIENT_ID: Joi.string().max(255),
  OIDC_CLIENT_SECRET: Joi.string().max(4_096),
  OIDC_CLAIM_ACCOUNTS: Joi.string().max(255),
  OIDC_CREATE_USERS: flag().default(false),
  PASSWORD_SIGN_IN: Joi.string().valid('on', 'off').default('on'),
  TRUSTED_PROXY_CIDRS: parsedBy(parseCidrs).default([]),
  LOG_LEVEL: logLevel().default('info'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl(),
})
  .and('EGRESS_CLIENT_CERT', 'EGRESS_CLIENT_KEY')
  .custom(requireSignIn);

/** Single sign-on needs all of its settings, and without passwords it is the only way to sign in. */
function requireSignIn(environment: Environment, helpers: Joi.CustomHelpers): Environment | Joi.ErrorReport {
  const problem = (text: string) => helpers.message({ custom: text });
  if (environment.OIDC_ISSUER === undefined)
    return environment.PASSWORD_SIGN_IN === 'off'
      ? problem('PASSWORD_SIGN_IN=off needs OIDC_ISSUER')
      : environment;
  const missing = (['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'PUBLIC_URL'] as const).filter(
    (name) => environment[name] === undefined,
  );
  return missing.length > 0 ? problem(`OIDC_ISSUER needs ${missing.join(', ')}`) : environment;
}

/** Throws an `EnvironmentError` that lists all problems. */
export function readSettings(source?: NodeJS.ProcessEnv): Settings {
  const settings = parseSettings(schema, source);
  return { ...settings, queueUrl: queueUrlWithLogin(settings.queueUrl, settings.databaseUrl) };
}
