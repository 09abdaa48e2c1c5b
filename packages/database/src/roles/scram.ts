import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

const ITERATIONS = 4_096;
const KEY_BYTES = 32;
const SALT_BYTES = 16;

/**
 * Returns what PostgreSQL stores of a password (RFC 5803), so that neither its log nor its statistics contain the password.
 * @param password printable ASCII, to which SASLprep makes no changes
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(SALT_BYTES)): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, KEY_BYTES, 'sha256');
  const hmac = (text: string) => createHmac('sha256', salted).update(text).digest();
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64');
  const serverKey = hmac('Server Key').toString('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
