export { DEPLOYMENTS, type Deployment, PLANS, type Plan, webhooksUnavailableReason } from './availability.ts';
export { deliveryHeaders, maskedHeaders } from './delivery-headers.ts';
export { type EventDefaults, type EventParsing, parseEvent } from './event-schema.ts';
export { EVENT_TYPES, type EventType, isEventType } from './event-types.ts';
export type {
  CompletedData,
  DeliveryPayload,
  ErroredData,
  JobRunEvent,
  PublishedEvent,
  RunDetails,
  StartedData,
} from './events.ts';
export { createHmacSecret } from './hmac-secret.ts';
export { createId, deliveryIdFor, eventIdForJob, type IdKind, idDay, idTimeMs, isId } from './ids.ts';
export { subscriptionMatches } from './matching.ts';
export { EVENT_LIMITS } from './plain-event.ts';
export { type Problem, problemsOf, VALIDATION_OPTIONS } from './problems.ts';
export {
  type DeliveryJob,
  deliveryJobId,
  JOB_RUN_EVENTS,
  UPKEEP,
  WEBHOOK_DELIVERIES,
} from './queue-names.ts';
export { orderedData, renderPayload } from './render-payload.ts';
export { RUN_STATUS_CODES, type RunStatus } from './run-status.ts';
export { sign, verify } from './signature.ts';
export { standardWebhooksHeaders } from './standard-webhooks.ts';
export {
  parseSubscription,
  SUBSCRIPTION_LIMITS,
  type SubscriptionFields,
  type SubscriptionParsing,
  type UrlProblem,
} from './subscription-schema.ts';
export { integerIdFromText, isIntegerId, textWithoutNul } from './text-schemas.ts';
export { isSecondsTimestamp, microsText, nanosecondTimestamp, secondsTimestamp } from './timestamps.ts';
