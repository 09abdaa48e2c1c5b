export { ServerClock } from '@runhook/runtime/server-clock';
export { DelayedError, type Job, UnrecoverableError, type Worker } from 'bullmq';
export {
  type JobState,
  JobsRejectedError,
  type PeekedJob,
  QueueFullError,
  QueueUnavailableError,
} from './backends/backend.ts';
export {
  createQueueBackend,
  migrateQueue,
  openRedis,
  type QueueBackend,
  type QueueBackendName,
  type QueueBackendOptions,
  queueBackendName,
} from './backends/index.ts';
export type { Backlog } from './backends/shared-concurrency.ts';
export {
  type DeliveryQueue,
  openDeliveryQueue,
  type QueuedDelivery,
  requireNoEviction,
  type WokenLane,
} from './delivery-queue.ts';
export { DISPATCHER_WORKER_NAME } from './dispatcher-level.ts';
export {
  type EventQueue,
  type IdentifiedEvent,
  openEventQueue,
} from './event-queue.ts';
export type { EventSample } from './event-sample.ts';
export { type Maintenance, type MaintenanceTask, startMaintenance } from './maintenance.ts';
export type { NextJob } from './next-job.ts';
export { type FailedJob, openQueueAdmin, type QueueAdmin, type QueueStats } from './queue-admin.ts';
export { queueUrlWithLogin } from './queue-url.ts';
export { ENQUEUE_WINDOW_MS } from './queued-events.ts';
export {
  createRunRequestWorker,
  openRunRequestQueue,
  type RunRequestQueue,
} from './run-request-queue.ts';
export { openShardAdmin, type ShardAdmin, type ShardsReconciled } from './shard-admin.ts';
export { parseShards, ShardWorkers } from './shard-workers.ts';
export { openQueueTelemetry, type QueueTelemetry } from './telemetry.ts';
