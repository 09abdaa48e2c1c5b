export {
  type AddressGuard,
  createAddressGuard,
  type EgressRules,
  egressRules,
  type PortRange,
  parseCidrs,
  parsePorts,
} from './address-guard.ts';
export { clientCertificateOf, parseCertificate, parseClientKey } from './client-certificate.ts';
export type { Egress, EgressOptions, EgressRequest, EgressResult } from './egress.ts';
export type { EgressResponse, EgressTimings } from './exchange.ts';
export {
  BLOCKED_CODES,
  BLOCKED_MESSAGE,
  type EgressErrorCode,
  type EgressFailure,
  isBlocked,
  isForbidden,
  NO_ADDRESS,
  publicErrorCode,
} from './failure.ts';
