export { EVENT_LIMITS, type EventDefaults, type EventParsing, parseEvent } from './event-schema.ts';
export {
  attemptsLeft,
  type CompletedData,
  type CycleProgress,
  type DeliveryJob,
  type DeliveryPayload,
  deliveryJobId,
  type ErroredData,
  EVENT_TYPES,
  type EventType,
  isEventType,
  JOB_RUN_EVENTS,
  type JobRunEvent,
  type PublishedEvent,
  RUN_STATUS_CODES,
  type RunDetails,
  type RunStatus,
  type StartedData,
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
  maskedHeaders,
  orderedData,
  renderPayload,
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
