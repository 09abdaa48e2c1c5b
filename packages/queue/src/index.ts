export { DelayedError, type Job, UnrecoverableError, type Worker } from 'bullmq';
export type { PeekedJob } from './backends/backend.ts';
export {
  createQueueBackend,
  migrateQueue,
  openRedis,
  type QueueBackend,
  type QueueBackendName,
  type QueueBackendOptions,
  QueueFullError,
  QueueUnavailableError,
  queueBackendName,
} from './backends/index.ts';
export {
  type DeliveryQueue,
  openDeliveryQueue,
  type QueuedDelivery,
  requireKeeping,
  type WokenLane,
} from './delivery-queue.ts';
export { type EventQueue, type IdentifiedEvent, openEventQueue } from './event-queue.ts';
export type { JobInLine } from './producer.ts';
export { type FailedJob, openQueueDesk, type QueueDesk, type QueueStats } from './queue-desk.ts';
export { openQueueTelemetry, type QueueTelemetry } from './telemetry.ts';
export { startUpkeep, type Upkeep, type UpkeepTask } from './upkeep.ts';
