export {
  createMemoryStore,
  type DeduplicationOptions,
  type DeduplicationState,
  type DeduplicationStore,
  deduplicate,
  EventInProgressError,
} from './deduplicate.ts';
export {
  expressHandler,
  fastifyHandler,
  type HandlerOptions,
  type OnEvent,
  webHandler,
} from './handlers.ts';
export {
  type DeliveryHeaders,
  InvalidDeliveryError,
  type JobRunEvent,
  type VerifyOptions,
  verify,
} from './verify.ts';
