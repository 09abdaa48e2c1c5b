import { createKeyPair, SIGNATURE_KEY_TYPES, type SignatureKeyType } from '@runhook/contract';
import type { SecretBox } from '@runhook/database';
import type { Prisma } from '@runhook/database/prisma';
import { responseObject, type Schema, schemaRef } from '../http/openapi/field-schemas.ts';
import { rotationPeriod, type SecretRotation } from './rotation.ts';

/** The public keys, `whpk_…`, that verify the signatures of a webhook (docs/contract.md#ed25519-signatures). */
interface PublicKeys {
  type: SignatureKeyType;
  /** Two during a rotation, the older one first. */
  public_keys: string[];
}

export interface SignatureKeyView extends PublicKeys {
  /** Absent unless a rotation of the key pair is in progress. */
  rotation?: SecretRotation;
}

/** Columns of the public keys. */
export const PUBLIC_KEY_COLUMNS = {
  signaturePublicKey: true,
  nextSignaturePublicKey: true,
  rotationStartedAtMicros: true,
  rotationEndsAtMicros: true,
} satisfies Prisma.SubscriptionSelect;

type PublicKeyRow = Prisma.SubscriptionGetPayload<{ select: typeof PUBLIC_KEY_COLUMNS }>;

/** Returns null if the webhook has no key pair. */
export function publicKeysOf(row: PublicKeyRow): PublicKeys | null {
  const { signaturePublicKey: current, nextSignaturePublicKey: next } = row;
  if (current === null) return null;
  const [type] = SIGNATURE_KEY_TYPES;
  if (next === null) return { type, public_keys: [current] };
  return { type, public_keys: rotationPeriod(row) === null ? [next] : [current, next] };
}

/** Returns the field of a response; none without a key pair. */
export function signatureKeyView(row: PublicKeyRow): { signature_key?: SignatureKeyView } {
  const keys = publicKeysOf(row);
  if (keys === null) return {};
  const rotation = row.nextSignaturePublicKey === null ? null : rotationPeriod(row);
  return { signature_key: { ...keys, ...(rotation !== null && { rotation }) } };
}

/** Columns of a key pair that a request changes; omitted ones keep their value. */
export interface SignatureKeyColumns {
  signatureKeyCiphertext?: string | null;
  signaturePublicKey?: string | null;
  nextSignatureKeyCiphertext?: null;
  nextSignaturePublicKey?: null;
  rotationStartedAt?: null;
  rotationEndsAt?: null;
}

/** Returns a new key pair, its private key encrypted. */
export function newSignatureKey(secrets: SecretBox): { ciphertext: string; publicKey: string } {
  const { privateKey, publicKey } = createKeyPair();
  return { ciphertext: secrets.encrypt(privateKey), publicKey };
}

/**
 * Returns the columns that a create or an update changes: none if the field is omitted, or names the type of the stored
 * key pair.
 * @param stored null on a create
 */
export function signatureKeyColumns(
  requested: SignatureKeyType | null | undefined,
  stored: PublicKeyRow | null,
  secrets: SecretBox,
): SignatureKeyColumns {
  const hasKey = stored !== null && stored.signaturePublicKey !== null;
  if (requested === undefined || (requested !== null) === hasKey) return {};
  if (requested !== null) {
    const { ciphertext, publicKey } = newSignatureKey(secrets);
    return { signatureKeyCiphertext: ciphertext, signaturePublicKey: publicKey };
  }
  const isRotating = stored !== null && stored.nextSignaturePublicKey !== null;
  return {
    signatureKeyCiphertext: null,
    signaturePublicKey: null,
    nextSignatureKeyCiphertext: null,
    nextSignaturePublicKey: null,
    ...(isRotating && { rotationStartedAt: null, rotationEndsAt: null }),
  };
}

const PUBLIC_KEYS_EXAMPLE = ['whpk_iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w='];
export const SIGNATURE_KEY_EXAMPLE: PublicKeys = { type: 'ed25519', public_keys: PUBLIC_KEYS_EXAMPLE };

const PROPERTIES: Record<keyof PublicKeys, Schema> = {
  type: { type: 'string', enum: SIGNATURE_KEY_TYPES, description: 'The signature algorithm.' },
  public_keys: {
    type: 'array',
    items: {
      type: 'string',
      pattern: '^whpk_[0-9A-Za-z+/]{43}=$',
      description: '`whpk_` and 32 bytes in base64.',
    },
    minItems: 1,
    maxItems: 2,
    description:
      'The public keys by which deliveries are signed: two during a rotation, the older one first.',
  },
};

/** Schemas of the OpenAPI document. */
export const SIGNATURE_KEY_SCHEMAS: Record<string, Schema> = {
  PublicKeys: responseObject<PublicKeys>('The public keys of a webhook.', PROPERTIES),

  SignatureKey: responseObject<SignatureKeyView>(
    'The key pair that signs in addition to the secret (`v1a` in `webhook-signature`). Absent if the webhook has none.',
    { ...PROPERTIES, rotation: schemaRef('SecretRotation') },
    ['rotation'],
  ),
};
