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
export type { Backlog } from './backends/pace.ts';
export {
  type DeliveryQueue,
  openDeliveryQueue,
  type QueuedDelivery,
  requireKeeping,
  type WokenLane,
} from './delivery-queue.ts';
export {
  type EventQueue,
  type IdentifiedEvent,
  openEventQueue,
} from './event-queue.ts';
export type { EventSample } from './event-sample.ts';
export type { JobInLine } from './first-in-line.ts';
export { type FailedJob, openQueueDesk, type QueueDesk, type QueueStats } from './queue-desk.ts';
export { UNDER_WAY_MS } from './queued-events.ts';
export { openShardDesk, type ShardDesk, type ShardsTended } from './shard-desk.ts';
export { parseShards, ShardWorkers } from './shard-workers.ts';
export { openQueueTelemetry, type QueueTelemetry } from './telemetry.ts';
export { startUpkeep, type Upkeep, type UpkeepTask } from './upkeep.ts';
