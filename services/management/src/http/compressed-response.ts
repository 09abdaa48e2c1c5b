import { type ContentEncoding, compressText, selectEncoding } from '@runhook/runtime';
import type { Response } from 'express';

/**
 * Sends a text, compressed if it is long and the client accepts that. Must not be used for a response with a secret: its
 * length would reveal the secret to a caller who can have chosen text in the same response (BREACH).
 * @param compress may return a stored result
 */
export async function sendCompressed(
  response: Response,
  text: string,
  compress: (text: string, encoding: ContentEncoding) => Promise<Buffer> = compressText,
): Promise<void> {
  const { method, headers } = response.req;
  response.vary('Accept-Encoding');
  const encoding = method === 'HEAD' ? null : selectEncoding(text, headers['accept-encoding']);
  if (encoding === null) {
    response.send(text);
    return;
  }
  const body = await compress(text, encoding);
  response.set('content-encoding', encoding).send(body);
}
