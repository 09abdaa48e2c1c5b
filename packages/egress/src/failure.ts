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

/** Why a request failed. */
export interface EgressFailure {
  /** To match; the log of an endpoint's owner has it. */
  code: EgressErrorCode;
  /** One plain sentence to show to everybody: no path, stack or body, and no address that the reader did not give. */
  message: string;
  /** What else whoever runs the service should know; for its own log only. */
  detail?: string;
}

/**
 * What is told of every target that was not dialled, whichever rule refused it and whether its name was found at all:
 * who could tell these apart could ask for the names and addresses of the network that this runs in.
 */
const NOT_DIALLED = 'The endpoint has no address that may be called.';

const notDialledCodes: ReadonlySet<string> = new Set<EgressErrorCode>([
  'address_forbidden',
  'port_forbidden',
  'dns_failed',
]);

/** Whether a rule of the guard was what refused. @param code as recorded */
export function isForbidden(code: string): boolean {
  return code === 'address_forbidden' || code === 'port_forbidden';
}

/** The code of a failure as it is told outside the log of deliveries. @param code as recorded */
export function outwardCode(code: string): string {
  return notDialledCodes.has(code) ? 'no_address' : code;
}

function notDialled(code: EgressErrorCode, detail: string): EgressFailure {
  return { code, message: NOT_DIALLED, detail };
}

/** Renders what went wrong with a request, from the error's class and code; messages of errors are never read. */
export function describeFailure(error: unknown): EgressFailure {
  const root = rootCause(error);
  if (root instanceof AddressForbiddenError) return notDialled('address_forbidden', root.message);
  if (root instanceof PortForbiddenError) return notDialled('port_forbidden', root.message);
  if (root instanceof UnexpectedAnswerError) return { code: 'invalid_response', message: root.message };
  if (root instanceof EgressClosedError) {
    return { code: 'request_failed', message: 'The sender was shut down before the request was complete.' };
  }
  if (root instanceof NameNotResolvedError) {
    return notDialled('dns_failed', `The name was not resolved (${errorCode(root.cause) || 'no address'}).`);
  }
  const expiredOn = expiries.get(root as object);
  if (expiredOn !== undefined) return untrusted(`it expired on ${expiredOn.toISOString().slice(0, 10)}`);
  return describeCode(errorCode(error));
}

const EXPIRED = 'CERT_HAS_EXPIRED';
const expiries = new WeakMap<object, Date>();

/**
 * Keeps which day an expired certificate was good until. Another one of its chain may have expired in its place: nothing is
 * known of that.
 */
export function noteExpiry(error: Error, validTo: () => string | undefined): void {
  if (errorCode(error) !== EXPIRED) return;
  const expiry = new Date(validTo() ?? Number.NaN);
  if (expiry.getTime() < Date.now()) expiries.set(error, expiry);
}

function untrusted(problem: string): EgressFailure {
  return { code: 'tls_untrusted', message: `The certificate is not trusted: ${problem}.` };
}

export function timedOut(timeoutMs: number): EgressFailure {
  return { code: 'timeout', message: `Timed out after ${timeoutMs / 1000} s.` };
}

/** got wraps what the socket reported, and the lookup wraps what DNS reported; ours are recognised by class on the way. */
function rootCause(error: unknown): unknown {
  let current = error;
  for (let depth = 0; depth < 5 && isNativeError(current); depth += 1) {
    if (isOurs(current) || !isNativeError(current.cause)) return current;
    current = current.cause;
  }
  return current;
}

function isOurs(error: Error): boolean {
  return (
    error instanceof AddressForbiddenError ||
    error instanceof PortForbiddenError ||
    error instanceof NameNotResolvedError ||
    error instanceof UnexpectedAnswerError ||
    error instanceof EgressClosedError
  );
}

/**
 * The code of an error, or '' when it has none that could be shown. Node's own errors may come from another realm (a
 * broken TLS write under node 24 in a test's sandbox does), where `instanceof Error` is false. OpenSSL 3.5 (node 24 and
 * newer) calls what it called SSLV3_ALERT SSL/TLS_ALERT.
 */
export function errorCode(error: unknown): string {
  const code = isNativeError(error) && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_/]{1,60}$/.test(code) ? code : '';
}

function describeCode(code: string): EgressFailure {
  const known = failureBySystemCode[code];
  if (known !== undefined) return known;
  const problem = certificateProblems[code];
  if (problem !== undefined) return untrusted(problem);
  if (code.startsWith('HPE_')) return { code: 'invalid_response', message: 'The answer was not valid HTTP.' };
  if (/^ERR_(SSL|TLS)_/.test(code)) return { code: 'tls_failed', message: 'The TLS handshake failed.' };
  return {
    code: 'request_failed',
    message: code === '' ? 'The request failed.' : `The request failed (${code}).`,
  };
}

const failureBySystemCode: Record<string, EgressFailure> = {
  ECONNREFUSED: { code: 'connection_refused', message: 'Connection refused.' },
  ECONNRESET: connectionClosed(),
  ECONNABORTED: connectionClosed(),
  EPIPE: connectionClosed(),
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
  HPE_HEADER_OVERFLOW: { code: 'invalid_response', message: 'The headers of the answer are too large.' },
};

/** OpenSSL's verdicts on a certificate, as Node gives them in `error.code`. */
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

function connectionClosed(): EgressFailure {
  return { code: 'connection_reset', message: 'The connection was closed before the answer was complete.' };
}

/** The name has no address, or its servers did not say in time. */
export class NameNotResolvedError extends Error {
  override readonly name = 'NameNotResolvedError';
  readonly code = 'ERR_NAME_NOT_RESOLVED';
}

/** The guard refuses every address the target has; `address` is one of them. */
export class AddressForbiddenError extends Error {
  override readonly name = 'AddressForbiddenError';
  readonly code = 'ERR_ADDRESS_FORBIDDEN';
  readonly address: string;

  constructor(address: string) {
    super(`The address ${address} is not allowed.`);
    this.address = address;
  }
}

/** The port is none of those that may be called. */
export class PortForbiddenError extends Error {
  override readonly name = 'PortForbiddenError';
  readonly code = 'ERR_PORT_FORBIDDEN';

  constructor(port: number) {
    super(`The port ${port} is not allowed.`);
  }
}

/** The endpoint said something HTTP allows but a webhook's endpoint has no reason to say. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError';
  readonly code = 'ERR_UNEXPECTED_ANSWER';
}

/** The egress was closed by its owner. */
export class EgressClosedError extends Error {
  override readonly name = 'EgressClosedError';
  readonly code = 'ERR_EGRESS_CLOSED';
}
