import { type EncryptionKey, parseEncryptionKeys } from '@runhook/database';
import { environmentRules, parseSettings, type SettingsOf } from '@runhook/runtime';
import Joi from 'joi';

const { parsedBy, postgresUrl } = environmentRules;

interface Environment {
  DATABASE_URL: string;
  /** Newest first. Only what encrypts needs them. */
  ENCRYPTION_KEYS?: EncryptionKey[];
}

export type AdminSettings = SettingsOf<Environment>;

const schema = Joi.object<Environment>({
  DATABASE_URL: postgresUrl().required().messages({
    'any.required':
      'DATABASE_URL is not set, and there is no `npm start` running to take it from: start that first, or set DATABASE_URL',
  }),
  ENCRYPTION_KEYS: parsedBy(parseEncryptionKeys),
});

const schemaWithKeys = schema.fork('ENCRYPTION_KEYS', (keys) =>
  keys.required().messages({
    'any.required': 'ENCRYPTION_KEYS is not set: this command needs the keys that the services have',
  }),
);

/** Throws an `EnvironmentError` with every problem at once. */
export function readAdminSettings(
  source: NodeJS.ProcessEnv,
  { needsKeys }: { needsKeys: boolean },
): AdminSettings {
  return parseSettings<Environment>(needsKeys ? schemaWithKeys : schema, source);
}
