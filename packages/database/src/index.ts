export { type CredentialKind, createCredential, credentialKind, hashCredential } from './credentials.ts';
export { DatabaseUnreachableError, isDatabaseUnavailable, runStatement } from './database-unavailable.ts';
export { dropOldDayPartitions, ensureDayPartitions } from './day-partitions.ts';
export { Prisma, type PrismaClient } from './generated/client.ts';
export {
  addMembership,
  createAccount,
  createServiceToken,
  createUser,
  LICENSES,
  type License,
  PERMISSION_SETS,
  type PermissionSet,
} from './identity.ts';
export { createJob, type JobView, jobView } from './jobs.ts';
export { migrate } from './migrate.ts';
export { type Database, type DatabaseOptions, openDatabase } from './open-database.ts';
export { type Reencryption, reencryptSecrets, type UnreadableSecret } from './reencrypt-secrets.ts';
export { withSchemaEngine } from './schema-engine.ts';
export { KNOWN_MIGRATIONS, requireSchema, SchemaBehindError } from './schema-version.ts';
export {
  createSecretBox,
  type EncryptionKey,
  parseEncryptionKeys,
  type SecretBox,
  SecretBoxError,
} from './secret-box.ts';
export { inTransaction, type Pool, type Queryable, type Transaction } from './transaction.ts';
