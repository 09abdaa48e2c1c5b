/** Deadline of one request to the provider, with its body. */
export const PROVIDER_TIMEOUT_MS = 5_000;
/** A discovery document has a few kilobytes, a key set or a token with many groups some ten. */
const RESPONSE_BYTES_MAX = 256 * 1_024;

/** The provider sent more than a response of it can need. */
class ResponseTooLargeError extends Error {
  readonly code = 'response_too_large';
}

/**
 * Fetches with a deadline and a maximum size of the body. The address is not restricted, since the operator configures
 * it, and the provider may be in the internal network. Redirects are not followed.
 */
export async function boundedFetch(url: string, init: RequestInit): Promise<Response> {
  const deadline = AbortSignal.timeout(PROVIDER_TIMEOUT_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, deadline]) : deadline;
  const response = await fetch(url, { ...init, redirect: 'manual', signal });
  const body = await readBounded(response);
  const { status, statusText, headers } = response;
  // A response of these statuses must not have a body, not even an empty one.
  const isBodiless = status === 204 || status === 205 || status === 304;
  return new Response(isBodiless ? null : body, { status, statusText, headers });
}

async function readBounded(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > RESPONSE_BYTES_MAX)
      throw new ResponseTooLargeError('The response of the provider is too large.');
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
