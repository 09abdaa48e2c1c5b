import { randomBytes } from 'node:crypto';
import { readJson, writePrivateJson } from './private-json.ts';

const KEY_BYTES = 32;

/**
 * The text of `ENCRYPTION_KEYS`: the one given, else one made on the first start and kept in `file` (600). It is as
 * long-lived as the database, because what that holds cannot be read without it.
 */
export function encryptionKeys(file: string, given: string | null): string {
  if (given !== null) return given;
  const kept = readJson(file) as { encryptionKeys?: string } | null;
  if (kept?.encryptionKeys !== undefined) return kept.encryptionKeys;
  const made = `local:${randomBytes(KEY_BYTES).toString('base64')}`;
  writePrivateJson(file, { encryptionKeys: made });
  return made;
}
