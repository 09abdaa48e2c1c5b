import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { deliveryHeaders, truncateWithEllipsis } from '@runhook/contract';
import { printable } from '@runhook/runtime/terminal-text';

/** Body and signing parameters of a request. */
export interface SignedMessage {
  body: string | Buffer;
  eventId: string;
  secret: string;
  signatureHeader: string | null;
}

/** Result of a request. `status` is null if there was no complete response; `error` then has the reason. */
export interface PostResult {
  status: number | null;
  error: string | null;
  durationMs: number;
  /** The beginning of the response body. */
  responseText: string;
}

const RESPONSE_BYTES_MAX = 16_384;

/** Sends the exact bytes with a new signature. Does not follow redirects, as deliveries do not. Never rejects. */
export async function post(
  url: string,
  message: SignedMessage,
  timeoutMs: number,
  stopping?: AbortSignal,
): Promise<PostResult> {
  const body = Buffer.from(message.body);
  const headers = {
    ...deliveryHeaders({
      body: message.body.toString(),
      eventId: message.eventId,
      hmacSecrets: [message.secret],
      sentAt: new Date(),
      signatureHeader: message.signatureHeader,
    }),
    'accept-encoding': 'identity',
    'content-length': String(body.length),
  };
  const timeoutSignal = AbortSignal.timeout(timeoutMs);
  const signal = stopping === undefined ? timeoutSignal : AbortSignal.any([timeoutSignal, stopping]);
  const startedMs = performance.now();
  const createResult = (status: number | null, error: string | null, responseText = ''): PostResult => ({
    status,
    error,
    durationMs: Math.round(performance.now() - startedMs),
    responseText,
  });
  return await new Promise((resolve) => {
    const fail = (error: NodeJS.ErrnoException) =>
      resolve(
        createResult(
          null,
          timeoutSignal.aborted ? `timed out after ${timeoutMs / 1_000} s` : (error.code ?? error.message),
        ),
      );
    const sendRequest = new URL(url).protocol === 'https:' ? requestHttps : requestHttp;
    const request = sendRequest(url, { method: 'POST', headers, signal, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        const text = Buffer.concat(chunks).subarray(0, RESPONSE_BYTES_MAX).toString();
        resolve(createResult(response.statusCode ?? null, null, text));
      });
    });
    request.on('error', fail);
    request.end(body);
  });
}

export const isSuccess = ({ status }: PostResult) => status !== null && status >= 200 && status < 300;

const EXCERPT_CHARACTERS_MAX = 120;

/** "200 in 12 ms", "500 in 3 ms: Internal error", "no response: ECONNREFUSED". */
export function postResultText({ status, error, durationMs, responseText }: PostResult): string {
  if (status === null) return `no response: ${error}`;
  const excerpt = truncateWithEllipsis(responseText.trim(), EXCERPT_CHARACTERS_MAX);
  return `${status} in ${durationMs} ms${excerpt === '' ? '' : `: ${printable(excerpt)}`}`;
}

export function postResultJson({ status, error, durationMs, responseText }: PostResult) {
  return { status, error, duration_ms: durationMs, response_body: responseText };
}
