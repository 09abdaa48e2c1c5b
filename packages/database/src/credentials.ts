import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const PREFIXES = { user: 'rhu_', service_token: 'rhs_' } as const;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const PATTERN = /^(rhu_|rhs_)([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export type CredentialKind = keyof typeof PREFIXES;

/**
 * A new API key (`rhu_`) or service token (`rhs_`): 256 random bits in base62, then a CRC-32 of them, so that a
 * secret scanner can tell one from any other text.
 */
export function createCredential(kind: CredentialKind): string {
  const random = base62(BigInt(`0x${randomBytes(32).toString('hex')}`), RANDOM_LENGTH);
  return PREFIXES[kind] + random + checksum(random);
}

/** Which kind of credential the text is, or null when it cannot be one: no need to ask the database. */
export function credentialKind(text: string): CredentialKind | null {
  const [, prefix, random, sum] = PATTERN.exec(text) ?? [];
  if (random === undefined || sum !== checksum(random)) return null;
  return prefix === PREFIXES.user ? 'user' : 'service_token';
}

/** What the database finds a credential by. 256 random bits need no slow hash. */
export function hashCredential(credential: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha256').update(credential).digest());
}

function checksum(random: string): string {
  return base62(BigInt(crc32(random)), CHECKSUM_LENGTH);
}

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = ALPHABET.charAt(Number(rest % 62n)) + text;
  return text;
}
