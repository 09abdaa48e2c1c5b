export { Prisma, type PrismaClient } from './generated/client.ts';
export {
  addMembership,
  type CredentialKind,
  createAccount,
  createCredential,
  createServiceToken,
  createUser,
  credentialKind,
  hashCredential,
  LICENSES,
  type License,
  PERMISSION_SETS,
  type PermissionSet,
} from './identity.ts';
export { createJob, type JobView, jobView } from './jobs.ts';
export { migrate, withSchemaEngine } from './migrate.ts';
export {
  type Database,
  type DatabaseOptions,
  inTransaction,
  openDatabase,
  type Pool,
  type Queryable,
  type Transaction,
} from './open-database.ts';
export {
  dropOldDayPartitions,
  ensureDayPartitions,
  KNOWN_MIGRATIONS,
  requireSchema,
  SchemaBehindError,
} from './schema.ts';
export {
  createSecretBox,
  type EncryptionKey,
  parseEncryptionKeys,
  type Reencryption,
  reencryptSecrets,
  type SecretBox,
  SecretBoxError,
  type UnreadableSecret,
} from './secrets.ts';
export { DatabaseUnreachableError, isDatabaseUnavailable, runStatement } from './statements.ts';
