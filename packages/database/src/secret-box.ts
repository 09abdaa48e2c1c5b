import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts secrets at rest. The text it makes is `<key name>.<base64url of nonce, tag and ciphertext>`. */
export interface SecretBox {
  encrypt(secret: string): string;
  /** Throws a {@link SecretBoxError} when the key is not configured or the text was tampered with. */
  decrypt(ciphertext: string): string;
}

export class SecretBoxError extends Error {
  readonly code = 'secret_unreadable';
}

export interface EncryptionKey {
  name: string;
  key: Buffer;
}

/** `name:base64,name:base64`, newest first, each 32 bytes. Throws a plain sentence without the key in it. */
export function parseEncryptionKeys(text: string): EncryptionKey[] {
  const keys = text.split(',').map((item, index) => {
    const [name, encoded, ...rest] = item.trim().split(':');
    if (!name || !encoded || rest.length > 0 || !/^[\w-]+$/.test(name)) {
      throw new Error(`key ${index + 1} must be name:base64`);
    }
    const key = Buffer.from(encoded, 'base64');
    if (key.length !== KEY_BYTES) throw new Error(`key "${name}" must be ${KEY_BYTES} bytes in base64`);
    return { name, key };
  });
  if (new Set(keys.map((key) => key.name)).size !== keys.length)
    throw new Error('two keys have the same name');
  return keys;
}

/** The newest key (the first) encrypts, all decrypt. The key's name is bound into the ciphertext. */
export function createSecretBox(keys: readonly EncryptionKey[]): SecretBox {
  const newest = keys[0];
  if (!newest) throw new Error('at least one encryption key is needed');
  const keysByName = new Map(keys.map(({ name, key }) => [name, key]));
  return {
    encrypt(secret) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, newest.key, nonce).setAAD(Buffer.from(newest.name));
      const body = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return `${newest.name}.${Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')}`;
    },
    decrypt(ciphertext) {
      const separator = ciphertext.indexOf('.');
      const name = ciphertext.slice(0, separator);
      const key = keysByName.get(name);
      if (!key) throw new SecretBoxError(`no encryption key is named "${name}"`);
      const bytes = Buffer.from(ciphertext.slice(separator + 1), 'base64url');
      try {
        const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), {
          authTagLength: TAG_BYTES,
        })
          .setAAD(Buffer.from(name))
          .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
        return (
          decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
        );
      } catch (cause) {
        throw new SecretBoxError('the secret does not decrypt', { cause });
      }
    },
  };
}
