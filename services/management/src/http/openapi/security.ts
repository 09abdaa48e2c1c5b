import { SESSION_COOKIE } from '../session-cookie.ts';
import type { SecurityRequirement, SecurityScheme } from './openapi-types.ts';

export const SECURITY_SCHEMES: Record<string, SecurityScheme> = {
  token: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description:
      'A user’s API key (`rhu_…`) or a service token (`rhs_…`) of an account, as `Token <key>`. Clients that take this scheme literally need the word `Token` and a space before the key.',
  },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The same credential as `Bearer <key>`; both mean the same.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description:
      'The console’s session, with the rights of its user. Whatever changes something, and the test of an endpoint, must come from the console’s own pages: with `Sec-Fetch-Site: same-origin`, or an `Origin` that names the host of the request. A request that has `Authorization` too is judged by that.',
  },
  deliverySignature: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description:
      'Of deliveries, for receivers: the lower-case hexadecimal HMAC-SHA256 of the raw body, keyed with the whole text of the webhook’s `hmac_secret`. Compute it over the body as it came and refuse what differs.',
  },
};

/** Any of them, on every operation that does not say otherwise. */
export const CALLER: SecurityRequirement[] = [{ token: [] }, { bearer: [] }, { session: [] }];
