import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { deliveryHeaders, shortText } from '@runhook/contract';
import { printable } from '@runhook/runtime/terminal-text';

/** A signed request, as a delivery sends it. */
export interface Signed {
  body: string | Buffer;
  eventId: string;
  secret: string;
  signatureHeader: string | null;
}

/** Result of a request. `status` is null if there was no response; `error` then has the reason. */
export interface Posted {
  status: number | null;
  error: string | null;
  durationMs: number;
  /** The beginning of the response body. */
  answer: string;
}

const ANSWER_BYTES_MAX = 16_384;

/** Sends the exact bytes with a new signature. Does not follow redirects, as deliveries do not. Never rejects. */
export async function post(
  url: string,
  signed: Signed,
  timeoutMs: number,
  stopping?: AbortSignal,
): Promise<Posted> {
  const body = Buffer.from(signed.body);
  const headers = {
    ...deliveryHeaders({
      body: signed.body.toString(),
      eventId: signed.eventId,
      hmacSecrets: [signed.secret],
      sentAt: new Date(),
      signatureHeader: signed.signatureHeader,
    }),
    'accept-encoding': 'identity',
    'content-length': String(body.length),
  };
  const late = AbortSignal.timeout(timeoutMs);
  const signal = stopping === undefined ? late : AbortSignal.any([late, stopping]);
  const startedMs = performance.now();
  const ended = (status: number | null, error: string | null, answer = ''): Posted => ({
    status,
    error,
    durationMs: Math.round(performance.now() - startedMs),
    answer,
  });
  return await new Promise((resolve) => {
    const fail = (error: NodeJS.ErrnoException) =>
      resolve(
        ended(null, late.aborted ? `timed out after ${timeoutMs / 1_000} s` : (error.code ?? error.message)),
      );
    const open = new URL(url).protocol === 'https:' ? requestHttps : requestHttp;
    const request = open(url, { method: 'POST', headers, signal, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        const text = Buffer.concat(chunks).subarray(0, ANSWER_BYTES_MAX).toString();
        resolve(ended(response.statusCode ?? null, null, text));
      });
    });
    request.on('error', fail);
    request.end(body);
  });
}

export const isGood = ({ status }: Posted) => status !== null && status >= 200 && status < 300;

const SHOWN_MAX = 120;

/** "200 in 12 ms", "500 in 3 ms: Internal error", "no response: ECONNREFUSED". */
export function postedWords({ status, error, durationMs, answer }: Posted): string {
  if (status === null) return `no response: ${error}`;
  const shown = shortText(answer.trim(), SHOWN_MAX);
  return `${status} in ${durationMs} ms${shown === '' ? '' : `: ${printable(shown)}`}`;
}

export function postedJson({ status, error, durationMs, answer }: Posted) {
  return { status, error, duration_ms: durationMs, answer };
}
