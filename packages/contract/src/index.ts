export {
  HEADER_LIMITS,
  type KeptHeaders,
  keptHeaders,
  MASK,
  maskedHeaders,
  SIGNATURE_HEADER,
  toldHeaders,
} from './delivery-headers.ts';
export { EVENT_LIMITS, type EventDefaults, type EventParsing, parseEvent } from './event-schema.ts';
export {
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  type EventType,
  isEventType,
  RUN_STATUS_CODES,
  RUN_TIMES,
  type RunDetails,
  type RunStatus,
  type RunTime,
} from './event-types.ts';
export {
  attemptsLeft,
  batchedEvents,
  type CycleProgress,
  createEvent,
  createSampleEvent,
  type DeliveryJob,
  type DeliveryPayload,
  deliveryJobId,
  EVENT_BATCH,
  type EventBatch,
  JOB_RUN_EVENTS,
  type JobRunEvent,
  type LaneJob,
  laneJobId,
  type PublishedEvent,
  toldStatus,
  UPKEEP,
  WEBHOOK_DELIVERIES,
} from './events.ts';
export {
  integerIdFromText,
  isIntegerId,
  type Problem,
  problemsOf,
  textWithoutNul,
  VALIDATION_OPTIONS,
} from './field-problems.ts';
export { createId, deliveryIdFor, eventIdForJob, type IdKind, idDay, idTimeMs, isId } from './ids.ts';
export {
  createHmacSecret,
  deliveryHeaders,
  orderedData,
  type RotatingSecret,
  renderPayload,
  rotatingSecret,
  type SigningSecrets,
  secretsAt,
  sign,
  standardWebhooksHeaders,
  verify,
} from './payload.ts';
export {
  DEPLOYMENTS,
  type Deployment,
  PLANS,
  type Plan,
  parseSubscription,
  SUBSCRIPTION_LIMITS,
  type SubscriptionFields,
  type SubscriptionParsing,
  subscriptionMatches,
  type UrlProblem,
  webhooksUnavailableReason,
} from './subscriptions.ts';
export { isSecondsTimestamp, microsText, nanosecondTimestamp, secondsTimestamp } from './timestamps.ts';
