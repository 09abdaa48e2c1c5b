import { type EncryptionKey, parseEncryptionKeys } from '@runhook/database';
import { parseCidrs } from '@runhook/egress';
import { queueBackendName } from '@runhook/queue';
import { environmentRules, parseSettings, type SettingsOf } from '@runhook/runtime';
import Joi from 'joi';

const { host, logLevel, parsedBy, port, postgresUrl, wholeNumber } = environmentRules;

/** What the service is told by its environment (DESIGN, section 6). */
interface Environment {
  DATABASE_URL: string;
  QUEUE_URL: string;
  /** Newest first. */
  ENCRYPTION_KEYS: EncryptionKey[];
  /** 0 takes a free one. */
  PORT: number;
  HOST: string;
  /** Of the test endpoint's request. */
  DELIVERY_TIMEOUT_MS: number;
  /** Retries that a redelivery has after its first attempt. */
  DELIVERY_MAX_RETRIES: number;
  /** Ranges opened beside the public addresses. */
  EGRESS_ALLOW_CIDRS: string[];
  LOG_LEVEL: string;
}

export type Settings = SettingsOf<Environment>;

export const SECRET_SETTINGS = ['encryptionKeys'] as const satisfies (keyof Settings)[];

const schema = Joi.object<Environment>({
  DATABASE_URL: postgresUrl().required(),
  QUEUE_URL: parsedBy((url) => queueBackendName(url) && url).required(),
  ENCRYPTION_KEYS: parsedBy(parseEncryptionKeys).required(),
  PORT: port().default(3_000),
  HOST: host().default('0.0.0.0'),
  DELIVERY_TIMEOUT_MS: wholeNumber(100, 120_000).default(10_000),
  DELIVERY_MAX_RETRIES: wholeNumber(0, 20).default(5),
  EGRESS_ALLOW_CIDRS: parsedBy(parseCidrs).default([]),
  LOG_LEVEL: logLevel().default('info'),
});

/** Throws an `EnvironmentError` with every problem at once. */
export function readSettings(source?: NodeJS.ProcessEnv): Settings {
  return parseSettings(schema, source);
}
