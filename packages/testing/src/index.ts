export { citusRestrictions } from './citus-restrictions.ts';
export {
  createDividedDatabase,
  explainingPool,
  leafOf,
  type OpenedLeaves,
  type RestrictedStatement,
} from './divided-days.ts';
export { type ExecutedPlan, explainedConnection, literal, rowsRead } from './explained-connection.ts';
export {
  countFannedOut,
  EXAMPLE_JOB,
  exampleEvent,
  seedAccount,
  seedSubscription,
  type TestAccount,
  type TestSubscription,
  testEncryptionKeys,
  testEncryptionKeysText,
  testSecrets,
} from './factories.ts';
export { findPoolers, type Pooler, startPooler } from './pooler.ts';
export {
  connectRedis,
  createTestQueue,
  createTestQueueUrl,
  findChromium,
  findHeadlessChromium,
  NO_CHROMIUM,
  oneQueueBackend,
  type QueueBackend,
  queueBackends,
  type RedisConnection,
  removeTestQueues,
  useOtherQueue,
} from './queue-backends.ts';
export {
  type RawHandler,
  type ReceivedRequest,
  type Receiver,
  type ReceiverAnswer,
  type ReceiverOptions,
  type Responder,
  startReceiver,
} from './receiver.ts';
export { type ReplicatedPostgres, startReplicatedPostgres } from './replicated-postgres.ts';
export {
  type SeededLane,
  type SeededLog,
  seedDeliveries,
  seedJobs,
  seedParked,
  seedSubscriptions,
  vacuumLog,
} from './seed-log.ts';
export {
  PARTITION_OF_ROW,
  type SpreadPostgres,
  spreadRecord,
  startSpreadPostgres,
  workerUrls,
} from './spread-postgres.ts';
export { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
export {
  createTestDatabase,
  prepareTemplate,
  removeTestDatabases,
  type TestDatabase,
} from './template-database.ts';
export { eventually, IN_VAIN_MS } from './waiting.ts';
