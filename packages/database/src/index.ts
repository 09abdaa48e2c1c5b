export {
  type ConnectionProblem,
  describeConnectionProblem,
  findConnectionProblem,
} from './connection-problem.ts';
export { distinctDays, inDays } from './day-filter.ts';
export {
  type DayPartitionsPass,
  deleteOldUnpartitioned,
  dropOldDayPartitions,
  ensureDayPartitions,
  findMissingDayPartitions,
} from './day-partitions.ts';
export { defaultPartitionBytes, isConversionRejection, isPermanentRejection } from './default-partition.ts';
export {
  EVENT_COLUMNS,
  EVENT_IDENTITY_COLUMNS,
  hasOtherData,
  isStoredEventData,
  type StoredEventData,
  storedEventData,
} from './event-data.ts';
export {
  EVENT_INCLUSIONS,
  type EventCursor,
  type EventInclusion,
  type EventState,
  type EventsToRecoverPage,
  type EventsToRecoverQuery,
  type EventToRecover,
  FIRST_EVENT,
  FIRST_PAGE_EVENTS,
  loadEventsToRecover,
  nextPageLimit,
  sentEventTypes,
  statesToRecover,
} from './events-to-recover.ts';
export { MIGRATION_NAMES } from './generated/migrations.ts';
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
  parseStored,
  permissionSetsOf,
} from './identity.ts';
export {
  createJob,
  findOrCreateEnvironment,
  findOrCreateProject,
  type JobView,
  jobView,
} from './jobs.ts';
export { readLockCapacity } from './lock-capacity.ts';
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
  listQuarantinedKeys,
  QUARANTINE_KINDS,
  type QuarantinedItem,
  type QuarantinedRow,
  type QuarantineKey,
  type QuarantineKind,
  rejectionReason,
  releaseQuarantined,
  withdrawEvent,
  withoutQuarantined,
} from './quarantine.ts';
export {
  probeWrite,
  probeWriteOnNewConnection,
  type RecordState,
  RecordWrites,
  type RecordWritesOptions,
  WRITE_CHECK_EVERY_MS,
} from './record-writes.ts';
export { Replica, type ReplicaOptions, type ReplicaState } from './replica.ts';
export { upsertRunsSql, upsertRunsValues } from './reported-runs.ts';
export { type Column, column, queryRows, type RowOf, requireColumns, UnexpectedRowError } from './rows.ts';
export { runEach } from './run-each.ts';
export { type BatchOptions, runInBatches, runInPages } from './run-in-batches.ts';
export {
  type CompressedRunStep,
  compressRunSteps,
  deleteRunSteps,
  RunStepsLimitError,
  type RunStepsTarget,
  saveRunSteps,
} from './run-steps.ts';
export { requireSchema, SchemaBehindError } from './schema.ts';
export {
  canDecryptNewest,
  createSecretBox,
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
  isDatabaseRejecting,
  isDatabaseUnavailable,
  isItemFault,
  isUniqueViolation,
  runStatement,
} from './statements.ts';
export { type UnnestColumns, unnestParameterCount, unnestSql, unnestValues } from './unnest.ts';
