import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import { runStatement } from './database-unavailable.ts';
import { createSecretBox, type EncryptionKey, type SecretBox, SecretBoxError } from './secret-box.ts';

/** Every column that holds ciphertext. */
const COLUMNS = [
  { secret: 'hmac_secret', table: 'subscriptions', column: 'hmac_secret_ciphertext', idType: 'text' },
  { secret: 'api_key', table: 'users', column: 'api_key_ciphertext', idType: 'bigint' },
] as const;

const BATCH_ROWS = 200;
const BUSY_PAUSE_MS = 100;
const PASSES_MAX = 50;

export interface UnreadableSecret {
  /** Of the subscription or user. */
  id: string;
  /** The key it was encrypted with, by its name; null when it does not say. */
  keyName: string | null;
}

/** What became of one kind of secret. */
export interface Reencryption {
  secret: (typeof COLUMNS)[number]['secret'];
  reencrypted: number;
  /** No key of ours decrypts them; left as they are. */
  unreadable: UnreadableSecret[];
  /** Rows that others kept locked, or changed, at every try: worth another call. */
  busy: number;
}

/**
 * Puts every secret that is not under the newest key under it. Safe while services run, and with itself: a batch
 * never waits for a lock, so it is in no deadlock, and replaces only what still is as it was read, so a key that is
 * rotated meanwhile stays rotated. Repeating it changes nothing. What it did before it throws stays done.
 *
 * @param keys newest first, as `ENCRYPTION_KEYS` has them
 */
export async function reencryptSecrets(
  pool: pg.Pool,
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

/** One walk over the table in the order of its ids. */
async function reencryptColumn(
  pool: pg.Pool,
  column: Column,
  newestName: string,
  box: SecretBox,
): Promise<Reencryption> {
  const { select, update } = statementsOf(column);
  const result: Reencryption = { secret: column.secret, reencrypted: 0, unreadable: [], busy: 0 };
  let lastId: string | null = null;
  while (true) {
    const rows: Row[] = await runStatement<Row>(pool, select, [lastId, `${newestName}.`, BATCH_ROWS]);
    const readable: (Row & { renewed: string })[] = [];
    for (const row of rows) {
      const renewed = renew(box, row.ciphertext);
      if (renewed !== null) readable.push({ ...row, renewed });
      else result.unreadable.push({ id: row.id, keyName: keyNameOf(row.ciphertext) });
    }
    const updated = await runStatement(pool, update, [
      readable.map(({ id }) => id),
      readable.map(({ ciphertext }) => ciphertext),
      readable.map(({ renewed }) => renewed),
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

function statementsOf({ table, column, idType }: Column) {
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

function renew(box: SecretBox, ciphertext: string): string | null {
  try {
    return box.encrypt(box.decrypt(ciphertext));
  } catch (error) {
    if (error instanceof SecretBoxError) return null;
    throw error;
  }
}

/** Only what looks like a name, since what is no ciphertext of ours may be a secret in the clear. */
function keyNameOf(ciphertext: string): string | null {
  return /^([\w-]{1,64})\./.exec(ciphertext)?.[1] ?? null;
}
