export {
  HEADER_LIMITS,
  HEADER_NAME,
  HEADER_VALUE,
  headerBytes,
  MASK,
} from './delivery-headers.ts';
export { FORMAT_OPTION_NAME, LABEL_KEY, OPTION_LIMITS } from './delivery-options.ts';
export {
  EVENT_LIMITS,
  type EventDefaults,
  type EventIdLimits,
  type EventParsing,
  isEventIdOutOfRange,
  parseEvent,
} from './event-schema.ts';
export {
  EVENT_TYPE_TABLE,
  EVENT_TYPES,
  type EventType,
  isEventType,
  RUN_FIELDS,
  RUN_STATUS_CODES,
  RUN_TIMES,
  type RunDetails,
  type RunStatus,
  type RunTime,
} from './event-types.ts';
export { type EventVolume, lowestRateLimit } from './event-volume.ts';
export {
  attemptsLeft,
  batchedEvents,
  type CycleProgress,
  type DeliveryJob,
  type DeliveryPayload,
  deliveryJobId,
  EVENT_BATCH,
  type EventBatch,
  type EventKey,
  eventJobId,
  JOB_RUN_EVENTS,
  type JobRunEvent,
  type LaneJob,
  laneJobId,
  MAINTENANCE,
  type PublishedEvent,
  WEBHOOK_DELIVERIES,
} from './events.ts';
export {
  boundedText,
  configuredText,
  integerId,
  integerIdFromText,
  nameText,
  type Problem,
  reportedText,
  reportedTime,
  toProblems,
  VALIDATION_OPTIONS,
} from './field-problems.ts';
export {
  type EventFilters,
  type EventFiltersView,
  type EventMatch,
  type EventSelection,
  eventMatches,
  FILTER_LIMITS,
  FILTER_NAMES,
  FILTER_RUN_STATUSES,
  type FilterSets,
  filterSets,
  filtersView,
  type MatchedEvent,
  MISMATCHES,
  type Mismatch,
  unmatchableFilters,
} from './filters.ts';
export { filtersSchema } from './filters-schema.ts';
export { interpretTargetResponse, NOT_ACCEPTED } from './formats/interpret.ts';
export {
  FORMAT_NAMES,
  type Format,
  type FormatInput,
  formatByName,
  formatOptionProblems,
  type Interpretation,
  type Rendering,
  recogniseFormat,
  type TargetResponse,
} from './formats/registry.ts';
export { IdSet } from './id-set.ts';
export { createId, deliveryIdFor, eventIdForJob, type IdKind, idDay, idTimeMs, isId } from './ids.ts';
export { type LoggedRequest, maskHeaders, toLoggedBody, toLoggedResponse } from './logged-exchange.ts';
export { createEvent, orderedData, renderPayload } from './payload.ts';
export { reportedStatus, runEndOf } from './reported-status.ts';
export { JOB_RUN_REQUESTS, type RunRequest, runRequestJobId } from './run-requests.ts';
export {
  isFinalRunStatus,
  isStoredRunStatus,
  RUN_STATUSES,
  type RunStatusCode,
  runStatusOfCode,
  runStatusOfText,
  STORED_RUN_STATUSES,
  type StoredRunStatus,
} from './run-statuses.ts';
export {
  commandStepName,
  limitMessageSteps,
  parseRunSteps,
  type ReportedRunStep,
  RUN_STEP_LIMITS,
  type RunStep,
  runStepsSchema,
  stepsBytes,
  truncateStart,
} from './run-steps.ts';
export { createSampleEvent, sampleEvent } from './samples.ts';
export {
  mappedShards,
  ONE_SHARD,
  parseShardMap,
  SHARD_SLOTS,
  SHARDS_KEY,
  SHARDS_MAX,
  type ShardFields,
  type ShardMap,
  shardFields,
  shardOf,
  shardPrefix,
  shardsInUse,
  slotOf,
  spreadSlots,
} from './shards.ts';
export {
  createKeyPair,
  type KeyPair,
  PUBLIC_KEY_PATTERN,
  SIGNATURE_HEADER,
  type SigningSecrets,
  sign,
  standardWebhooksHeaders,
  verify,
  verifyEd25519,
} from './signatures.ts';
export {
  createHmacSecret,
  deliveryHeaders,
  HMAC_SECRET_PATTERN,
  type RotatingSecret,
  rotatingSecret,
  secretsAt,
} from './signing.ts';
export {
  DEFAULT_TEST_EVENT_TYPE,
  DEPLOYMENTS,
  type Deployment,
  type EndpointTestFields,
  PLANS,
  type Plan,
  parseEndpointTest,
  parseStoredTest,
  parseSubscription,
  SIGNATURE_KEY_TYPES,
  type SignatureKeyType,
  SUBSCRIPTION_LIMITS,
  type SubscriptionFields,
  type SubscriptionParsing,
  type TestMessageFields,
  type UrlProblem,
  webhooksUnavailableReason,
} from './subscriptions.ts';
export {
  codePointLength,
  formatCount,
  hasInvalidText,
  INVALID_TEXT_PROBLEM,
  isLongerThan,
  truncateText,
  truncateWithEllipsis,
  wellFormedText,
} from './text.ts';
export {
  isIsoSecondsTime,
  microsecondTimestamp,
  microsText,
  nanosecondTimestamp,
  secondsTimestamp,
} from './timestamps.ts';
