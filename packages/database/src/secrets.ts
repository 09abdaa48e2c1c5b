import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from './open-database.ts';
import { runStatement } from './statements.ts';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts secrets at rest. The ciphertext is `<key name>.<base64url of nonce, tag and ciphertext>`. */
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

/** Parses `name:base64,name:base64`, newest first, each 32 bytes. Throws an error whose message does not contain the key. */
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

/** Encrypts with the newest key (the first), decrypts with all. The key's name is authenticated with the ciphertext. */
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

/** No secret in use is encrypted with a configured key. */
export class KeysUnknownError extends Error {
  readonly code = 'KEYS_UNKNOWN';
}

/** Returns SQL for the distinct key names. It skips from name to name, as the index has one entry for each secret. */
function selectKeyNames(column: string): string {
  const name = `split_part(${column}, '.', 1)`;
  const inUse = `FROM subscriptions WHERE active AND deleted_at IS NULL AND ${column} IS NOT NULL`;
  return `(
  WITH RECURSIVE names AS (
    (SELECT ${name} AS name ${inUse} ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT (SELECT ${name} ${inUse} AND ${name} > names.name ORDER BY 1 LIMIT 1) FROM names WHERE names.name IS NOT NULL
  )
  SELECT name FROM names WHERE name IS NOT NULL)`;
}

/** Ciphertext columns that deliveries use. */
const KEY_NAMES = [
  'hmac_secret_ciphertext',
  'next_hmac_secret_ciphertext',
  'signature_key_ciphertext',
  'next_signature_key_ciphertext',
  'headers_ciphertext',
  'format_options_ciphertext',
]
  .map(selectKeyNames)
  .join(' UNION ');

/**
 * Checks by name that at least one key of the secrets in use is configured, or that there are no secrets. A missing key
 * does not prevent the deliveries of other subscriptions; `unknown` lists the names of missing keys.
 * @throws KeysUnknownError if all keys of secrets in use are missing
 */
export async function requireKeys(
  database: Pool,
  keys: readonly EncryptionKey[],
): Promise<{ unknown: string[] }> {
  const rows = await runStatement<{ name: string }>(database, KEY_NAMES, [], 'key-names');
  const configured = new Set(keys.map(({ name }) => name));
  const unknown = rows.map(({ name }) => name).filter((name) => !configured.has(name));
  if (unknown.length > 0 && unknown.length === rows.length)
    throw new KeysUnknownError(
      `Secrets are under ${unknown.join(', ')}; ENCRYPTION_KEYS has ${[...configured].join(', ')}.`,
    );
  return { unknown };
}

const SELECT_NEWEST_SECRET = `
  SELECT hmac_secret_ciphertext AS ciphertext FROM subscriptions WHERE active AND deleted_at IS NULL
  ORDER BY created_at DESC LIMIT 1`;

/**
 * Whether the secret of the newest active subscription can be decrypted with the key of its name, which may have the
 * right name and the wrong value. True when no subscription is active.
 */
export async function canDecryptNewest(database: Pool, keys: readonly EncryptionKey[]): Promise<boolean> {
  const [row] = await runStatement<{ ciphertext: string }>(database, SELECT_NEWEST_SECRET, []);
  return row === undefined || reencrypt(createSecretBox(keys), row.ciphertext) !== null;
}

/** All columns with ciphertext. A next secret or key comes first, because a rotation may move it to the other column. */
const COLUMNS = [
  {
    secret: 'next_hmac_secret',
    table: 'subscriptions',
    column: 'next_hmac_secret_ciphertext',
    idType: 'text',
  },
  { secret: 'hmac_secret', table: 'subscriptions', column: 'hmac_secret_ciphertext', idType: 'text' },
  {
    secret: 'next_signature_key',
    table: 'subscriptions',
    column: 'next_signature_key_ciphertext',
    idType: 'text',
  },
  { secret: 'signature_key', table: 'subscriptions', column: 'signature_key_ciphertext', idType: 'text' },
  { secret: 'headers', table: 'subscriptions', column: 'headers_ciphertext', idType: 'text' },
  {
    secret: 'format_options',
    table: 'subscriptions',
    column: 'format_options_ciphertext',
    idType: 'text',
  },
  { secret: 'api_key', table: 'users', column: 'api_key_ciphertext', idType: 'bigint' },
  {
    secret: 'refresh_token',
    table: 'oidc_identities',
    column: 'refresh_token_ciphertext',
    idType: 'bigint',
  },
] as const;

const BATCH_ROWS = 200;
const BUSY_PAUSE_MS = 100;
const PASSES_MAX = 50;

export interface UnreadableSecret {
  /** Id of the subscription, user or identity. */
  id: string;
  /** Name of the key that it was encrypted with; null when the ciphertext does not contain one. */
  keyName: string | null;
}

/** Result for one kind of secret. */
export interface Reencryption {
  secret: (typeof COLUMNS)[number]['secret'];
  reencrypted: number;
  /** Secrets that no configured key decrypts; they are left unchanged. */
  unreadable: UnreadableSecret[];
  /** Number of rows that other sessions locked or changed at every attempt; another call may succeed. */
  busy: number;
}

/**
 * Re-encrypts every secret that is not under the newest key. Safe while services run, and to run concurrently: a batch
 * never waits for a lock, so it cannot deadlock, and it replaces only ciphertexts that have not changed since they were
 * read, so that it does not undo a concurrent rotation. Idempotent. Batches before an error stay committed.
 *
 * @param keys newest first, as in `ENCRYPTION_KEYS`
 */
export async function reencryptSecrets(
  pool: Pool,
  keys: readonly [EncryptionKey, ...EncryptionKey[]],
): Promise<Reencryption[]> {
  const box = createSecretBox(keys);
  const results: Reencryption[] = [];
  for (const column of COLUMNS) {
    let reencrypted = 0;
    let pass = await reencryptColumn(pool, column, keys[0].name, box);
    reencrypted += pass.reencrypted;
    for (let passes = 1; pass.busy > 0 && passes < PASSES_MAX; passes += 1) {
      await wait(BUSY_PAUSE_MS);
      pass = await reencryptColumn(pool, column, keys[0].name, box);
      reencrypted += pass.reencrypted;
    }
    results.push({ ...pass, reencrypted });
  }
  return results;
}

type Column = (typeof COLUMNS)[number];

/** Reencrypts a column: scans the table once, in the order of its ids. */
async function reencryptColumn(
  pool: Pool,
  column: Column,
  newestName: string,
  box: SecretBox,
): Promise<Reencryption> {
  const { select, update } = columnStatements(column);
  const result: Reencryption = { secret: column.secret, reencrypted: 0, unreadable: [], busy: 0 };
  let lastId: string | null = null;
  while (true) {
    const rows: Row[] = await runStatement<Row>(pool, select, [lastId, `${newestName}.`, BATCH_ROWS]);
    const readable: (Row & { reencryptedText: string })[] = [];
    for (const row of rows) {
      const reencryptedText = reencrypt(box, row.ciphertext);
      if (reencryptedText !== null) readable.push({ ...row, reencryptedText });
      else result.unreadable.push({ id: row.id, keyName: readKeyName(row.ciphertext) });
    }
    const updated = await runStatement(pool, update, [
      readable.map(({ id }) => id),
      readable.map(({ ciphertext }) => ciphertext),
      readable.map(({ reencryptedText }) => reencryptedText),
    ]);
    result.reencrypted += updated.length;
    result.busy += readable.length - updated.length;
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH_ROWS) return result;
    lastId = last.id;
  }
}

interface Row {
  id: string;
  ciphertext: string;
}

function columnStatements({ table, column, idType }: Column) {
  return {
    select: `
      SELECT id::text, ${column} AS ciphertext FROM ${table}
      WHERE ($1::${idType} IS NULL OR id > $1::${idType}) AND NOT starts_with(${column}, $2)
      ORDER BY ${table}.id LIMIT $3`,
    update: `
      WITH secret AS (
        SELECT * FROM unnest($1::${idType}[], $2::text[], $3::text[]) AS secret (id, was, renewed)
      ), free AS (
        SELECT t.id, secret.renewed FROM ${table} t JOIN secret ON secret.id = t.id AND secret.was = t.${column}
        FOR NO KEY UPDATE OF t SKIP LOCKED
      )
      UPDATE ${table} t SET ${column} = free.renewed FROM free WHERE t.id = free.id RETURNING t.id`,
  };
}

function reencrypt(box: SecretBox, ciphertext: string): string | null {
  try {
    return box.encrypt(box.decrypt(ciphertext));
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

/** Returns only text in the form of a key name: a value that is not a valid ciphertext may be a secret in plain text. */
function readKeyName(ciphertext: string): string | null {
  return /^([\w-]{1,64})\./.exec(ciphertext)?.[1] ?? null;
}
