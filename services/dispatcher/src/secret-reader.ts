import type { SecretBox } from '@runhook/database';

const REMEMBERED_MAX = 10_000;

/** Decrypts `hmac_secret`s, remembering the latest ones; a changed secret has another ciphertext. */
export function createSecretReader(secrets: SecretBox): (ciphertext: string) => string {
  const remembered = new Map<string, string>();
  return (ciphertext) => {
    const known = remembered.get(ciphertext);
    if (known !== undefined) return known;
    const secret = secrets.decrypt(ciphertext);
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    remembered.set(ciphertext, secret);
    return secret;
  };
}
