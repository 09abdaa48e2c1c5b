export { type AddressGuard, createAddressGuard, parseCidrs } from './address-guard.ts';
export {
  createEgress,
  type Egress,
  type EgressOptions,
  type EgressRequest,
  type EgressResult,
} from './egress.ts';
export type { EgressResponse, EgressTimings } from './exchange.ts';
export type { EgressErrorCode, EgressFailure } from './failure.ts';
