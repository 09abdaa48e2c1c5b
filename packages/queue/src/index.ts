export { DelayedError, type Job, UnrecoverableError, type Worker } from 'bullmq';
export { type DeliveryQueue, openDeliveryQueue, type QueuedDelivery } from './delivery-queue.ts';
export {
  createEventPublisher,
  type EventPublisher,
  type EventPublisherOptions,
  InvalidEventError,
} from './event-publisher.ts';
export { type EventQueue, type IdentifiedEvent, openEventQueue } from './event-queue.ts';
export type { JobInLine } from './first-in-line.ts';
export { migrateQueue } from './migrate-queue.ts';
export {
  createQueueBackend,
  type QueueBackend,
  type QueueBackendName,
  queueBackendName,
} from './queue-backend.ts';
export { openQueueTelemetry, type QueueTelemetry } from './queue-telemetry.ts';
export { QueueUnavailableError } from './queue-unavailable.ts';
export { openRedis } from './redis-connection.ts';
export { startUpkeep, type Upkeep, type UpkeepTask } from './upkeep.ts';
