import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { createId, type Deployment, type Plan } from '@runhook/contract';
import type { PrismaClient } from './generated/client.ts';
import type { SecretBox } from './secrets.ts';

const CREDENTIAL_PREFIXES = { user: 'rhu_', service_token: 'rhs_' } as const;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const CREDENTIAL_PATTERN = /^(rhu_|rhs_)([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export type CredentialKind = keyof typeof CREDENTIAL_PREFIXES;

/**
 * Creates an API key (`rhu_`) or service token (`rhs_`): 256 random bits as 43 base62 characters, then the CRC-32 of
 * this text, by which a secret scanner recognizes it.
 */
export function createCredential(kind: CredentialKind): string {
  const random = base62(BigInt(`0x${randomBytes(32).toString('hex')}`), RANDOM_LENGTH);
  return CREDENTIAL_PREFIXES[kind] + random + checksum(random);
}

/** Returns the kind of the credential, or null when the text cannot be one, so that no query is needed. */
export function credentialKind(text: string): CredentialKind | null {
  const [, prefix, random, sum] = CREDENTIAL_PATTERN.exec(text) ?? [];
  if (random === undefined || sum !== checksum(random)) return null;
  return prefix === CREDENTIAL_PREFIXES.user ? 'user' : 'service_token';
}

/** Returns the hash by which the database finds a credential. 256 random bits need no slow hash. */
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

export const PERMISSION_SETS = [
  'account_admin',
  'admin',
  'developer',
  'member',
  'read_only',
  'job_runner',
] as const;
export const LICENSES = ['developer', 'read_only', 'it'] as const;

export type PermissionSet = (typeof PERMISSION_SETS)[number];
export type License = (typeof LICENSES)[number];

/**
 * Parses the text of a column that a constraint limits to certain values.
 * @throws TypeError for any other text: the schema and this build are incompatible
 */
export function parseStored<T extends string>(values: readonly T[], text: string): T {
  const value = values.find((candidate) => candidate === text);
  if (value === undefined)
    throw new TypeError(`the database contains "${text}", not one of ${values.join(', ')}`);
  return value;
}

/** Returns the permission sets of a row. Sets that this build does not define are omitted and grant nothing. */
export function permissionSetsOf({ permissionSets }: { permissionSets: readonly string[] }): PermissionSet[] {
  return PERMISSION_SETS.filter((permissionSet) => permissionSets.includes(permissionSet));
}

export async function createAccount(
  prisma: PrismaClient,
  account: { name: string; plan: Plan; deployment: Deployment },
): Promise<{ id: number; identifier: string }> {
  const { id, identifier } = await prisma.account.create({
    data: { ...account, identifier: createId('account') },
  });
  return { id: Number(id), identifier };
}

/** Creates a user with an API key, which the database stores as a hash, and as ciphertext for the profile page. */
export async function createUser(
  prisma: PrismaClient,
  secrets: SecretBox,
  user: { email: string; name: string; password: string },
): Promise<{ id: number; apiKey: string }> {
  // Imported on demand, because it is native code that few processes need.
  const { hash } = await import('@node-rs/argon2');
  const apiKey = createCredential('user');
  const { id } = await prisma.user.create({
    data: {
      email: user.email.toLowerCase(),
      name: user.name,
      passwordHash: await hash(user.password),
      apiKeyHash: hashCredential(apiKey),
      apiKeyCiphertext: secrets.encrypt(apiKey),
    },
  });
  return { id: Number(id), apiKey };
}

export async function addMembership(
  prisma: PrismaClient,
  membership: { accountId: number; userId: number; license: License; permissionSets: PermissionSet[] },
): Promise<void> {
  const { accountId, userId, license, permissionSets } = membership;
  await prisma.membership.create({
    data: { accountId: BigInt(accountId), userId: BigInt(userId), license, permissionSets },
  });
}

/** Creates a service token, which is returned only here; the database has its hash. */
export async function createServiceToken(
  prisma: PrismaClient,
  token: { accountId: number; name: string; permissionSets: PermissionSet[]; expiresAt?: Date },
): Promise<{ id: number; token: string }> {
  const credential = createCredential('service_token');
  const { id } = await prisma.serviceToken.create({
    data: {
      accountId: BigInt(token.accountId),
      name: token.name,
      tokenHash: hashCredential(credential),
      permissionSets: token.permissionSets,
      expiresAt: token.expiresAt ?? null,
    },
  });
  return { id: Number(id), token: credential };
}
