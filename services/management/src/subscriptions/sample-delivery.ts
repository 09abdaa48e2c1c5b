import {
  deliveryHeaders,
  type Format,
  interpretTargetResponse,
  type JobRunEvent,
  MASK,
  maskHeaders,
  NOT_ACCEPTED,
  type SigningSecrets,
  toLoggedResponse,
} from '@runhook/contract';
import { type Egress, type EgressResult, NO_ADDRESS, publicErrorCode } from '@runhook/egress';
import type { Logger } from '@runhook/runtime';
import { renderMessage, type TestFormat } from './test-message.ts';

/** Contents and destination of a test. */
export interface Sample {
  accountId: number;
  event: JobRunEvent;
  message: TestFormat;
  /** Address of the console, for links in messages; null if it is not set. */
  consoleUrl: string | null;
  subscription: { id: string; name: string };
  url: string;
  /** Null means that of the format. */
  signatureHeader: string | null;
  /** Headers that the subscriber configured. */
  customHeaders: Record<string, string>;
  /** Returns the secrets that sign at that time. @param nowMs milliseconds since the epoch */
  secretsAt(nowMs: number): SigningSecrets;
  /** Returns the private keys that sign at that time. Undefined without a key pair. */
  privateKeysAt?: (nowMs: number) => readonly string[] | null;
}

/** Response of the test endpoints (docs/contract.md#test-endpoint). */
export interface Verification {
  /** Error in one sentence, or null if the endpoint accepted the request. */
  verification_error: string | null;
  /** The endpoint's status; without a response, "504" (timeout) or "502". */
  verification_status_code: string;
  /** Null if the endpoint accepted the request; absent from the response to a GET unless included. */
  verification_error_code?: string | null;
  /** Absent from the response to a GET unless included. */
  exchange?: TestExchange;
}

/** The request and the response in the format of a logged attempt and its delivery. */
export interface TestExchange {
  method: 'POST';
  url: string;
  /** Microseconds since the epoch, as digits. */
  started_at: string;
  /** Null if no request was sent for want of an address. */
  duration_ms: number | null;
  http_status_code: string;
  error: { code: string; message: string } | null;
  /** Signatures and custom headers are masked. */
  request_headers: Record<string, string>;
  request_body: string;
  /** Null without a response, as is the body. */
  response_headers: Record<string, string> | null;
  response_body: string | null;
  response_truncated: boolean;
  /** Null if no request was sent. */
  timings: {
    dns_ms: number | null;
    connect_ms: number | null;
    tls_ms: number | null;
    first_byte_ms: number | null;
    total_ms: number;
  } | null;
}

/**
 * Sends a signed sample for any subscription and writes nothing to the database (docs/contract.md#test-endpoint).
 * @param beforeSending called immediately before the request; throws if the caller has been rejected meanwhile
 */
export async function sendSample(
  { egress, logger }: { egress: Pick<Egress, 'post'>; logger: Pick<Logger, 'info'> },
  sample: Sample,
  beforeSending: () => void,
): Promise<Required<Verification>> {
  const { accountId, event, message, subscription, url, signatureHeader, customHeaders } = sample;
  const { format, options } = message;
  const sentAt = new Date();
  const { body, contentType } = renderMessage(event, subscription, message, sample.consoleUrl);
  const hmacSecrets = sample.secretsAt(sentAt.getTime());
  const headers = deliveryHeaders({
    body,
    eventId: event.eventId,
    hmacSecrets,
    privateKeys: sample.privateKeysAt?.(sentAt.getTime()) ?? null,
    sentAt,
    signatureHeader,
    contentType,
    ...(format !== null && { formatSignatureHeader: format.signatureHeader }),
    customHeaders,
  });
  beforeSending();
  const result = await egress.post({ accountId, url, headers, body: Buffer.from(body) });
  if (result.error?.detail !== undefined) {
    // The response hides the blocking rule and the addresses of the host; the log shows them to the operator.
    const { code: errorCode, detail: errorDetail } = result.error;
    logger.info(
      { accountId, subscriptionId: subscription.id, errorCode, errorDetail },
      'endpoint test blocked',
    );
  }
  const request = { headers, customHeaders, hmacSecrets, options };
  const logged = result.response && toLoggedResponse(result.response, request);
  const verification = verificationOf(result, logged, format);
  const loggedRequest = { url, headers, body: maskOptions(body, options) };
  return { ...verification, exchange: exchangeOf(result, loggedRequest, logged, verification) };
}

type LoggedResponse = ReturnType<typeof toLoggedResponse>;

function verificationOf(
  { response, error }: Pick<EgressResult, 'response' | 'error'>,
  logged: LoggedResponse | null,
  format: Format | null,
): Required<Omit<Verification, 'exchange'>> {
  if (error || !response || !logged) {
    return {
      verification_error: error?.message ?? 'The endpoint did not respond.',
      verification_status_code: error?.code === 'timeout' ? '504' : '502',
      verification_error_code: error === null ? 'request_failed' : publicErrorCode(error.code),
    };
  }
  const { statusCode } = response;
  const interpretation = format === null ? null : interpretTargetResponse(format, response, logged);
  const is2xx = statusCode >= 200 && statusCode < 300;
  const isDelivered = interpretation === null ? is2xx : interpretation.result === 'delivered';
  return {
    verification_error: isDelivered
      ? null
      : (interpretation?.message ?? `The endpoint responded with ${statusCode}.`),
    verification_status_code: String(statusCode),
    verification_error_code: isDelivered ? null : is2xx ? NOT_ACCEPTED : 'unsuccessful_status',
  };
}

/** Replaces the values of the format's options, which are secrets. */
function maskOptions(body: string, options: Readonly<Record<string, string>>): string {
  return Object.values(options).reduce(
    (masked, value) => masked.replaceAll(JSON.stringify(value), JSON.stringify(MASK)),
    body,
  );
}

function exchangeOf(
  { startedAt, durationMs, timings }: EgressResult,
  request: { url: string; headers: Record<string, string>; body: string },
  response: LoggedResponse | null,
  verification: Required<Omit<Verification, 'exchange'>>,
): TestExchange {
  const { verification_error: message, verification_error_code: code } = verification;
  // Duration and phases would show how long the lookup of a blocked name took.
  const wasBlocked = code === NO_ADDRESS;
  return {
    method: 'POST',
    url: request.url,
    started_at: `${startedAt.getTime()}000`,
    duration_ms: wasBlocked ? null : durationMs,
    http_status_code: verification.verification_status_code,
    error: code === null ? null : { code, message: message ?? '' },
    request_headers: maskHeaders(request.headers),
    request_body: request.body,
    response_headers: response?.headers ?? null,
    response_body: response?.body ?? null,
    response_truncated: response?.truncated ?? false,
    timings:
      timings === null || wasBlocked
        ? null
        : {
            dns_ms: timings.dnsMs,
            connect_ms: timings.connectMs,
            tls_ms: timings.tlsMs,
            first_byte_ms: timings.firstByteMs,
            total_ms: timings.totalMs,
          },
  };
}

// For the OpenAPI document, which adds the URL and the body: a test of a webhook that is not saved.
export const EXCHANGE_EXAMPLE: Omit<TestExchange, 'request_body' | 'url'> = {
  method: 'POST',
  started_at: '1795168800123000',
  duration_ms: 100,
  http_status_code: '200',
  error: null,
  request_headers: { 'content-type': 'application/json', 'user-agent': 'Runhook/0.1.0', authorization: MASK },
  response_headers: { 'content-type': 'text/plain' },
  response_body: 'thanks',
  response_truncated: false,
  timings: { dns_ms: 4, connect_ms: 21, tls_ms: 27, first_byte_ms: 46, total_ms: 99 },
};
