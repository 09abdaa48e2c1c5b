// Imports only node:crypto, because the package for receivers includes this file.
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  sign as signBytes,
  timingSafeEqual,
  verify as verifyBytes,
} from 'node:crypto';

/**
 * The valid secrets at a point in time: the first one signs the signature header, and each one makes a Standard
 * Webhooks signature.
 */
export type SigningSecrets = readonly [string, ...string[]];

export const SECRET_PREFIX = 'whsec_';

/** The signature header, unless the subscription names another. */
export const SIGNATURE_HEADER = 'Authorization';

/**
 * Returns the value of a delivery's signature header: the lowercase hex HMAC-SHA256 of the exact body, keyed with the
 * whole text of `hmac_secret` (docs/contract.md#signing). A string is signed as its UTF-8 bytes.
 */
export function sign(body: string | Uint8Array, hmacSecret: string): string {
  return createHmac('sha256', hmacSecret).update(body).digest('hex');
}

/**
 * Returns one signature of the Standard Webhooks scheme, including `v1,`. Its key is the decoded base64 part of the
 * secret, as in the libraries of that scheme.
 */
export function standardWebhooksSignature(
  eventId: string,
  timestampSeconds: number | string,
  body: string | Uint8Array,
  hmacSecret: string,
): string {
  const key = Buffer.from(hmacSecret.slice(SECRET_PREFIX.length), 'base64');
  const signed = createHmac('sha256', key).update(`${eventId}.${timestampSeconds}.`).update(body);
  return `v1,${signed.digest('base64')}`;
}

/**
 * Returns the three headers of the Standard Webhooks scheme, which receivers with those libraries use for replay
 * protection. Two secrets give two signatures, and the libraries accept either.
 * @param timestampSeconds time of this attempt's signature, in seconds since the epoch
 * @param privateKeys each adds a `v1a` signature; undefined if the webhook has none
 */
export function standardWebhooksHeaders(
  eventId: string,
  timestampSeconds: number,
  body: string,
  hmacSecrets: SigningSecrets,
  privateKeys: readonly string[] = [],
): { 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string } {
  const signatures = hmacSecrets.map((hmacSecret) =>
    standardWebhooksSignature(eventId, timestampSeconds, body, hmacSecret),
  );
  for (const privateKey of privateKeys)
    signatures.push(ed25519Signature(eventId, timestampSeconds, body, privateKey));
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatures.join(' '),
  };
}

const PRIVATE_KEY_PREFIX = 'whsk_';
const PUBLIC_KEY_PREFIX = 'whpk_';

/** Matches a public key: `whpk_` and 32 bytes in base64. */
export const PUBLIC_KEY_PATTERN = /^whpk_[0-9A-Za-z+/]{43}=$/;

/** Ed25519 keys as Standard Webhooks serializes them. */
export interface KeyPair {
  /** `whsk_` and the base64 of the 32 bytes of the private key and the 32 of the public one. */
  privateKey: string;
  /** `whpk_` and the base64 of 32 bytes. */
  publicKey: string;
}

const KEY_BYTES = 32;

export function createKeyPair(): KeyPair {
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const [privateBytes, publicBytes] = [Buffer.from(d ?? '', 'base64url'), Buffer.from(x ?? '', 'base64url')];
  return {
    privateKey: PRIVATE_KEY_PREFIX + Buffer.concat([privateBytes, publicBytes]).toString('base64'),
    publicKey: PUBLIC_KEY_PREFIX + publicBytes.toString('base64'),
  };
}

/** Returns a JSON Web Key, which Node.js imports in a tenth of the time that it takes for DER or PEM. */
function toJwk(publicBytes: Buffer, privateBytes?: Buffer): JsonWebKey {
  const d = privateBytes && { d: privateBytes.toString('base64url') };
  return { kty: 'OKP', crv: 'Ed25519', x: publicBytes.toString('base64url'), ...d };
}

/** Returns one Ed25519 signature of the Standard Webhooks scheme, including `v1a,`. It covers what `v1` covers. */
function ed25519Signature(
  eventId: string,
  timestampSeconds: number | string,
  body: string | Uint8Array,
  privateKey: string,
): string {
  const bytes = Buffer.from(privateKey.slice(PRIVATE_KEY_PREFIX.length), 'base64');
  const jwk = toJwk(bytes.subarray(KEY_BYTES), bytes.subarray(0, KEY_BYTES));
  const key = createPrivateKey({ key: jwk, format: 'jwk' });
  return `v1a,${signBytes(null, signedContent(eventId, timestampSeconds, body), key).toString('base64')}`;
}

/** Matches one signature of `webhook-signature`: 64 bytes in base64. */
const ED25519_SIGNATURE = /^v1a,([0-9A-Za-z+/]{86}==)$/;

/** Whether `signature` is the `v1a` signature of the delivery by `publicKey`; false for other versions. */
export function verifyEd25519(
  eventId: string,
  timestampSeconds: string,
  body: string | Uint8Array,
  publicKey: string,
  signature: string,
): boolean {
  const encoded = ED25519_SIGNATURE.exec(signature)?.[1];
  if (encoded === undefined) return false;
  const bytes = Buffer.from(publicKey.slice(PUBLIC_KEY_PREFIX.length), 'base64');
  const key = createPublicKey({ key: toJwk(bytes), format: 'jwk' });
  const content = signedContent(eventId, timestampSeconds, body);
  return verifyBytes(null, content, key, Buffer.from(encoded, 'base64'));
}

function signedContent(
  eventId: string,
  timestampSeconds: number | string,
  body: string | Uint8Array,
): Uint8Array {
  const prefix = Buffer.from(`${eventId}.${timestampSeconds}.`);
  return Buffer.concat([prefix, typeof body === 'string' ? Buffer.from(body) : body]);
}

/**
 * Whether `authorization` is the signature of the raw body, compared in constant time. False for undefined and for
 * anything other than 64 lowercase hex digits.
 */
export function verify(
  body: string | Uint8Array,
  hmacSecret: string,
  authorization: string | undefined,
): boolean {
  if (typeof authorization !== 'string' || !/^[0-9a-f]{64}$/.test(authorization)) return false;
  return timingSafeEqual(Buffer.from(sign(body, hmacSecret)), Buffer.from(authorization));
}
