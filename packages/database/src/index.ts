export {
  type ConnectionProblem,
  connectionProblem,
  connectionSentence,
} from './connection-problem.ts';
export {
  type DayPartitionsRound,
  deleteOldUnpartitioned,
  dropOldDayPartitions,
  ensureDayPartitions,
  missingDayPartitions,
} from './day-partitions.ts';
export { distinctDays, inDays } from './days-of-log.ts';
export { defaultPartitionBytes, isConversionRejection, isPermanentRejection } from './default-partition.ts';
export {
  EVENT_IDENTITY_COLUMNS,
  GIVEN_EVENT,
  hasOtherData,
  isStoredEventData,
  type StoredEventData,
  storedEventData,
} from './event-data.ts';
export { KNOWN_MIGRATIONS } from './generated/migrations.ts';
export { type Given, givenRows, givenSize, givenValues } from './given.ts';
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
  permissionSetsOf,
  storedAs,
} from './identity.ts';
export { createJob, insertJob, type JobView, jobView } from './jobs.ts';
export { lockRoom } from './lock-room.ts';
export {
  type Database,
  type DatabaseOptions,
  inTransaction,
  openDatabase,
  type Pool,
  type Queryable,
  type Statement,
  type Transaction,
} from './open-database.ts';
export { requirePreparedStatements } from './prepared-statements.ts';
export {
  addQuarantined,
  countQuarantined,
  listQuarantined,
  QUARANTINE_KINDS,
  type QuarantinedItem,
  type QuarantinedRow,
  type QuarantineKey,
  type QuarantineKind,
  quarantinedKeys,
  rejectionReason,
  releaseQuarantined,
  withdrawEvent,
  withoutQuarantined,
} from './quarantine.ts';
export {
  probeWrite,
  probeWriteElsewhere,
  type RecordState,
  RecordWrites,
  type RecordWritesOptions,
  WRITE_CHECK_EVERY_MS,
} from './record-writes.ts';
export { Replica, type ReplicaOptions, type ReplicaState } from './replica.ts';
export { type Column, column, queryRows, type RowOf, requireColumns, UnexpectedRowError } from './rows.ts';
export { runEach } from './run-each.ts';
export { type BatchOptions, runInBatches } from './run-in-batches.ts';
export { recordRunsOfEvents, valuesOfRuns } from './runs-of-events.ts';
export { requireSchema, SchemaBehindError } from './schema.ts';
export {
  createSecretBox,
  decryptsNewest,
  type EncryptionKey,
  KeysUnknownError,
  parseEncryptionKeys,
  type Reencryption,
  reencryptSecrets,
  requireKeys,
  type SecretBox,
  SecretBoxError,
  type UnreadableSecret,
} from './secrets.ts';
export { readServerTimeMs } from './server-time.ts';
export {
  DatabaseUnreachableError,
  isDatabaseRefusing,
  isDatabaseUnavailable,
  isItemFault,
  isTaken,
  runStatement,
} from './statements.ts';
