export {
  type CitusCluster,
  distributeRecord,
  PARTITION_OF_ROW,
  startCitusCluster,
  workerUrls,
} from './citus-cluster.ts';
export { findCitusRestrictions } from './citus-restrictions.ts';
export { eventually, WAIT_TIMEOUT_MS } from './eventually.ts';
export {
  countRowsRead,
  type ExecutedPlan,
  formatLiteral,
  openExplainedConnection,
} from './explained-connection.ts';
export {
  countDispatchedEvents,
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
export { discordTarget, pagerDutyTarget, slackTarget, teamsTarget } from './format-targets.ts';
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
  type ReceiverOptions,
  type ReceiverResponse,
  type Responder,
  startReceiver,
} from './receiver.ts';
export { type ReplicatedPostgres, startReplicatedPostgres } from './replicated-postgres.ts';
export { missingS3Server, type S3Server, startS3Server } from './s3-server.ts';
export {
  type SeededLane,
  type SeededLog,
  seedDeferred,
  seedDeliveries,
  seedJobs,
  seedSubscriptions,
  vacuumLog,
} from './seed-log.ts';
export { prepareDatabase, prepareQueue, serviceUrls, TEST_ROLES, withServiceLogin } from './service-roles.ts';
export {
  type AccessedPartitions,
  createExplainingPool,
  createSubpartitionedDatabase,
  type RestrictedStatement,
  readLeafIndex,
} from './subpartitioned-days.ts';
export { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
export {
  createTestDatabase,
  prepareTemplate,
  removeTestDatabases,
  type TestDatabase,
} from './template-database.ts';
