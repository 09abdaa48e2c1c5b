export {
  type AddressGuard,
  createAddressGuard,
  type EgressRules,
  egressRules,
  type PortRange,
  parseCidrs,
  parsePorts,
} from './address-guard.ts';
export type { Egress, EgressOptions, EgressRequest, EgressResult } from './egress.ts';
export type { EgressResponse, EgressTimings } from './exchange.ts';
export { type EgressErrorCode, type EgressFailure, isForbidden, publicErrorCode } from './failure.ts';
