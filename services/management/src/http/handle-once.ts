import type { Idempotency } from '../idempotency/idempotency.ts';
import type { AccountEndpoint, AccountRequest } from './endpoint.ts';
import type { Answer } from './envelope.ts';
import { InvalidRequestError } from './errors.ts';

const HEADER = 'Idempotency-Key';
const KEY = /^[\x20-\x7e]{1,255}$/;

/**
 * Calls the endpoint; a POST that brings an `Idempotency-Key` (DESIGN, section 7, "Runs") once for each key. Replacing
 * one's API key is no account's endpoint, and so has no keys: a repeat comes with the old one, which is refused.
 * @param params of the path, by name
 */
export async function handleOnce(
  endpoint: AccountEndpoint,
  idempotency: Idempotency,
  call: { request: AccountRequest; params: object },
): Promise<Answer> {
  const { request, params } = call;
  const key = endpoint.method === 'POST' ? keyOf(request.header(HEADER)) : null;
  if (key === null) return await endpoint.handle(request);
  const { principal, body } = request;
  const keyed = { principal, request: [endpoint.method, endpoint.path, params], key, body };
  return await idempotency.once(keyed, () => endpoint.handle(request));
}

function keyOf(header: string | undefined): string | null {
  if (header === undefined) return null;
  if (KEY.test(header)) return header;
  const message = `${HEADER} must be 1 to 255 printable ASCII characters`;
  throw new InvalidRequestError([{ field: HEADER, message }]);
}
