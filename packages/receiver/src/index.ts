export {
  expressHandler,
  fastifyHandler,
  type HandlerOptions,
  type OnEvent,
  webHandler,
} from './handlers.ts';
export {
  type RepeatOptions,
  type RepeatState,
  type RepeatStore,
  RepeatUnderway,
  rememberInMemory,
  withoutRepeats,
} from './repeats.ts';
export {
  type DeliveryHeaders,
  type JobRunEvent,
  RefusedDelivery,
  type VerifyOptions,
  verify,
} from './verify.ts';
