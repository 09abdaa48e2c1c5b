import type { ServerMetadata } from 'openid-client';
import { boundedFetch, PROVIDER_TIMEOUT_MS } from './bounded-fetch.ts';

/** A verified logout token: of one session, of all sessions of a user, or of one session of a user. */
export interface LogoutToken {
  issuer: string;
  subject: string | null;
  sid: string | null;
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
/** Bounds the time in which a token can be replayed; providers send it at once. */
const TOKEN_AGE_SECONDS_MAX = 600;
const CLOCK_TOLERANCE_SECONDS = 60;
/** Interval between two reads of the provider's keys, whatever keys tokens name. */
const KEYS_COOLDOWN_MS = 30_000;
/** Never `none` or a symmetric algorithm. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
/** Errors of jose that concern the provider's keys, not the token. */
const KEY_ERRORS = new Set(['ERR_JWKS_TIMEOUT', 'ERR_JOSE_GENERIC', 'ERR_JWKS_INVALID']);

type Verifier = (token: string) => Promise<LogoutToken | null>;

/**
 * Verifies tokens by OpenID Connect Back-Channel Logout 1.0, section 2.6. The verifier returns null for an invalid
 * token, and throws if the provider's keys cannot be read.
 */
export function createLogoutVerifier(
  { issuer, jwks_uri: jwksUri }: ServerMetadata,
  clientId: string,
): Verifier {
  let opened: Promise<Verifier> | null = null;
  return async (token) => {
    if (jwksUri === undefined) return null;
    opened ??= openVerifier({ issuer, jwksUri, clientId });
    return await (await opened)(token);
  };
}

async function openVerifier(options: {
  issuer: string;
  jwksUri: string;
  clientId: string;
}): Promise<Verifier> {
  const { issuer, jwksUri, clientId } = options;
  const { createRemoteJWKSet, customFetch, errors, jwtVerify } = await import('jose');
  const keys = createRemoteJWKSet(new URL(jwksUri), {
    timeoutDuration: PROVIDER_TIMEOUT_MS,
    cooldownDuration: KEYS_COOLDOWN_MS,
    [customFetch]: (url: string, init: RequestInit) => boundedFetch(url, init),
  });
  return async (token) => {
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience: clientId,
        algorithms: ALGORITHMS,
        maxTokenAge: TOKEN_AGE_SECONDS_MAX,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
      });
      const { events, nonce, sub, sid } = payload;
      // An ID token has a nonce and no events, and must not end a session.
      const isLogout =
        typeof events === 'object' && events !== null && EVENT in events && nonce === undefined;
      const subject = typeof sub === 'string' && sub !== '' ? sub : null;
      const session = typeof sid === 'string' && sid !== '' ? sid : null;
      return isLogout && (subject !== null || session !== null) ? { issuer, subject, sid: session } : null;
    } catch (error) {
      if (error instanceof errors.JOSEError && !KEY_ERRORS.has(error.code)) return null;
      throw error;
    }
  };
}
