import { isNativeError } from 'node:util/types';

export type EgressErrorCode =
  | 'timeout'
  | 'address_forbidden'
  | 'port_forbidden'
  | 'dns_failed'
  | 'connection_refused'
  | 'connection_reset'
  | 'unreachable'
  | 'tls_untrusted'
  | 'tls_failed'
  | 'invalid_response'
  | 'invalid_url'
  | 'request_failed';

/** The reason why a request failed. */
export interface EgressFailure {
  /** For comparisons and the operator; users see {@link publicErrorCode}. */
  code: EgressErrorCode;
  /**
   * A plain sentence that may be shown to any user: no path, stack, response body, or address that the user did not
   * enter.
   */
  message: string;
  /** Details for the operator, for the service's own log only. */
  detail?: string;
}

/**
 * The message for every target that was not contacted, whichever rule rejected it and whether its name was found:
 * telling these cases apart would let a user probe the names and addresses of the internal network.
 */
export const BLOCKED_MESSAGE = 'The endpoint has no address that may be called.';

/** Codes of targets that were not contacted, for operators only. */
export const BLOCKED_CODES = [
  'address_forbidden',
  'port_forbidden',
  'dns_failed',
] as const satisfies EgressErrorCode[];

/** The code that users see for each of {@link BLOCKED_CODES}. */
export const NO_ADDRESS = 'no_address';

const blockedCodes: ReadonlySet<string> = new Set(BLOCKED_CODES);

/** Whether the target was not contacted, because of the guard or because its name has no address. @param code as recorded */
export function isBlocked(code: string): boolean {
  return blockedCodes.has(code);
}

/** Whether the guard rejected the target. @param code as recorded */
export function isForbidden(code: string): boolean {
  return code === 'address_forbidden' || code === 'port_forbidden';
}

/** Returns the error code as shown to users. @param code as recorded */
export function publicErrorCode(code: string): string {
  return isBlocked(code) ? NO_ADDRESS : code;
}

function blockedFailure(code: EgressErrorCode, detail: string): EgressFailure {
  return { code, message: BLOCKED_MESSAGE, detail };
}

/** Describes the failure of a request by the error's class and code; never by its message. */
export function describeFailure(error: unknown): EgressFailure {
  const root = rootCause(error);
  if (root instanceof AddressForbiddenError) return blockedFailure('address_forbidden', root.message);
  if (root instanceof PortForbiddenError) return blockedFailure('port_forbidden', root.message);
  if (root instanceof UnexpectedResponseError) return { code: 'invalid_response', message: root.message };
  if (root instanceof EgressClosedError) {
    return { code: 'request_failed', message: 'The sender was shut down before the request was complete.' };
  }
  if (root instanceof NameNotResolvedError) {
    return blockedFailure(
      'dns_failed',
      `The name was not resolved (${errorCode(root.cause) || 'no address'}).`,
    );
  }
  const expiredOn = expiries.get(root as object);
  if (expiredOn !== undefined)
    return untrustedFailure(`it expired on ${expiredOn.toISOString().slice(0, 10)}`);
  return describeCode(errorCode(error));
}

const EXPIRED = 'CERT_HAS_EXPIRED';
const expiries = new WeakMap<object, Date>();

/**
 * Records the date on which the certificate expired. If it has not expired, another certificate of its chain has, whose
 * date is unknown.
 */
export function noteExpiry(error: Error, validTo: () => string | undefined): void {
  if (errorCode(error) !== EXPIRED) return;
  const expiry = new Date(validTo() ?? Number.NaN);
  if (expiry.getTime() < Date.now()) expiries.set(error, expiry);
}

function untrustedFailure(problem: string): EgressFailure {
  return { code: 'tls_untrusted', message: `The certificate is not trusted: ${problem}.` };
}

export function timeoutFailure(timeoutMs: number): EgressFailure {
  return { code: 'timeout', message: `Timed out after ${timeoutMs / 1000} s.` };
}

/**
 * Unwraps the errors of got and of the lookup down to the socket's or DNS error; errors of this package end the search.
 */
function rootCause(error: unknown): unknown {
  let current = error;
  for (let depth = 0; depth < 5 && isNativeError(current); depth += 1) {
    if (isEgressError(current) || !isNativeError(current.cause)) return current;
    current = current.cause;
  }
  return current;
}

function isEgressError(error: Error): boolean {
  return (
    error instanceof AddressForbiddenError ||
    error instanceof PortForbiddenError ||
    error instanceof NameNotResolvedError ||
    error instanceof UnexpectedResponseError ||
    error instanceof EgressClosedError
  );
}

/**
 * Returns the code of an error, or '' if it has none that may be shown. Uses isNativeError because an error may come
 * from another realm (e.g. a broken TLS write under Node 24 in a Jest sandbox), where `instanceof Error` is false.
 * OpenSSL 3.5 (Node 24 and newer) renamed SSLV3_ALERT codes to SSL/TLS_ALERT.
 */
export function errorCode(error: unknown): string {
  const code = isNativeError(error) && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_/]{1,60}$/.test(code) ? code : '';
}

function describeCode(code: string): EgressFailure {
  const failure = failureBySystemCode[code];
  if (failure !== undefined) return failure;
  const problem = certificateProblems[code];
  if (problem !== undefined) return untrustedFailure(problem);
  if (code.startsWith('HPE_'))
    return { code: 'invalid_response', message: 'The response was not valid HTTP.' };
  if (/^ERR_(SSL|TLS)_/.test(code)) return { code: 'tls_failed', message: 'The TLS handshake failed.' };
  return {
    code: 'request_failed',
    message: code === '' ? 'The request failed.' : `The request failed (${code}).`,
  };
}

const failureBySystemCode: Record<string, EgressFailure> = {
  ECONNREFUSED: { code: 'connection_refused', message: 'Connection refused.' },
  ECONNRESET: connectionClosedFailure(),
  ECONNABORTED: connectionClosedFailure(),
  EPIPE: connectionClosedFailure(),
  ETIMEDOUT: { code: 'timeout', message: 'The connection timed out.' },
  ERR_SOCKET_CONNECTION_TIMEOUT: { code: 'timeout', message: 'The connection timed out.' },
  EHOSTUNREACH: { code: 'unreachable', message: 'The host cannot be reached.' },
  EHOSTDOWN: { code: 'unreachable', message: 'The host cannot be reached.' },
  ENETUNREACH: { code: 'unreachable', message: 'The network cannot be reached.' },
  ENETDOWN: { code: 'unreachable', message: 'The network cannot be reached.' },
  EADDRNOTAVAIL: { code: 'unreachable', message: 'The address cannot be reached.' },
  EACCES: { code: 'unreachable', message: 'The connection was blocked by a firewall.' },
  EPERM: { code: 'unreachable', message: 'The connection was blocked by a firewall.' },
  EPROTO: { code: 'tls_failed', message: 'The TLS handshake failed.' },
  HPE_HEADER_OVERFLOW: { code: 'invalid_response', message: 'The headers of the response are too large.' },
};

/** Problems of certificates by Node's `error.code`: OpenSSL's verification errors, and Node's check of host names. */
const certificateProblems: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'self-signed certificate in the chain',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its issuer is unknown',
  UNABLE_TO_GET_ISSUER_CERT: 'its issuer is unknown',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its issuer is unknown',
  CERT_UNTRUSTED: 'its issuer is not trusted',
  CERT_REJECTED: 'its issuer is not trusted',
  [EXPIRED]: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  CERT_REVOKED: 'it was revoked',
  CERT_SIGNATURE_FAILURE: 'its signature is wrong',
  CERT_CHAIN_TOO_LONG: 'its chain is too long',
  INVALID_CA: 'an issuer in the chain is no certificate authority',
  INVALID_PURPOSE: 'it is not meant for a server',
  PATH_LENGTH_EXCEEDED: 'its chain is too long',
  HOSTNAME_MISMATCH: 'it is for another host name',
  ERR_TLS_CERT_ALTNAME_INVALID: 'it is for another host name',
};

function connectionClosedFailure(): EgressFailure {
  return { code: 'connection_reset', message: 'The connection was closed before the response was complete.' };
}

/** The name has no address, or its servers did not respond in time. */
export class NameNotResolvedError extends Error {
  override readonly name = 'NameNotResolvedError';
  readonly code = 'ERR_NAME_NOT_RESOLVED';
}

/** The guard rejects every address of the target; `address` is one of them. */
export class AddressForbiddenError extends Error {
  override readonly name = 'AddressForbiddenError';
  readonly code = 'ERR_ADDRESS_FORBIDDEN';
  readonly address: string;

  constructor(address: string) {
    super(`The address ${address} is not allowed.`);
    this.address = address;
  }
}

/** The port is not among the allowed ports. */
export class PortForbiddenError extends Error {
  override readonly name = 'PortForbiddenError';
  readonly code = 'ERR_PORT_FORBIDDEN';

  constructor(port: number) {
    super(`The port ${port} is not allowed.`);
  }
}

/** The response is valid HTTP, but not acceptable from a webhook endpoint. */
export class UnexpectedResponseError extends Error {
  override readonly name = 'UnexpectedResponseError';
  readonly code = 'ERR_UNEXPECTED_RESPONSE';
}

/** The egress was closed before the request had ended. */
export class EgressClosedError extends Error {
  override readonly name = 'EgressClosedError';
  readonly code = 'ERR_EGRESS_CLOSED';
}
