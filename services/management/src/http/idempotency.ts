// SQL by hand: a key is claimed in one statement, which takes over what has expired.
import { createHash, randomUUID } from 'node:crypto';
import {
  column,
  type Pool,
  queryRows,
  runStatement,
  type SecretBox,
  SecretBoxError,
  type Transaction,
} from '@runhook/database';
import type { Prisma } from '@runhook/database/prisma';
import type { Principal } from '../identity/principals.ts';
import type { CommitGate } from './commit-gate.ts';
import type { Answer } from './envelope.ts';
import { ConflictError, KeyInUseError, KeyOfAnotherBodyError } from './errors.ts';
import { CLAIM_MS, type Claim, KeyReleases } from './key-releases.ts';

/** A request that brought an `Idempotency-Key`. */
export interface KeyedRequest {
  principal: Principal;
  /** Method, path pattern and parameters: the account is among these. */
  request: unknown;
  key: string;
  /** As parsed: white space does not make another body. */
  body: unknown;
  /** Once the gate is shut, nothing can be committed, so the key is free. */
  gate: Pick<CommitGate, 'onShut'>;
}

declare const KEPT: unique symbol;

/** An answer that went through a {@link Keeper}. What writes gives no other: the compiler sees to it. */
export type KeptAnswer = Answer & { readonly [KEPT]: true };

/**
 * Keeps a request's answer in the transaction of its work, so that a repeat finds both or neither, whatever happens to
 * the answer of its COMMIT. Keeps nothing for a request without a key. Throws a 409 when another request has taken the
 * key over meanwhile: this one's work must not be committed.
 */
export interface Keeper {
  /** Of work that may be committed together with that of others; null for what has to be a transaction of its own. */
  readonly withoutKey: WithoutKey | null;
  /** In a transaction of SQL by hand, as its last statement. */
  within(transaction: Transaction, answer: Answer): Promise<KeptAnswer>;
  /** In a transaction of Prisma Client, as its last statement. */
  withinPrisma(transaction: Prisma.TransactionClient, answer: Answer): Promise<KeptAnswer>;
}

/** For work that is no transaction of its own: the two steps that {@link Keeper.within} makes of it. */
export interface WithoutKey {
  /** The last thing before the work is sent to be committed. Throws when the caller was refused meanwhile. */
  beforeCommit(): void;
  /** What was committed, or changed nothing. */
  answer(answer: Answer): KeptAnswer;
}

/** Of a request without a key. */
export const KEEPS_NOTHING: Keeper = {
  withoutKey: { beforeCommit: () => {}, answer: (answer) => answer as KeptAnswer },
  within: async (_transaction, answer) => answer as KeptAnswer,
  withinPrisma: async (_transaction, answer) => answer as KeptAnswer,
};

/** Of a request without a key that has to be a transaction of its own. */
export const KEEPS_NOTHING_ALONE: Keeper = { ...KEEPS_NOTHING, withoutKey: null };

/** What is kept is about to be committed, so it has to pass the request's gate. */
export function keptBefore(beforeCommit: () => void, keeper: Keeper): Keeper {
  const passed = (answer: KeptAnswer) => {
    beforeCommit();
    return answer;
  };
  const { withoutKey } = keeper;
  return {
    withoutKey: withoutKey && { ...withoutKey, beforeCommit },
    within: async (transaction, answer) => passed(await keeper.within(transaction, answer)),
    withinPrisma: async (transaction, answer) => passed(await keeper.withinPrisma(transaction, answer)),
  };
}

export interface Idempotency {
  /**
   * Does the work unless the same principal did it with the same key within 24 hours: then answers what was answered,
   * with `Idempotent-Replay`. Only what succeeded is kept. A refusal changed nothing, and what it was refused for may
   * change, so it frees the key, as a fault does: at once, or as soon as the database is back. Throws a 409 while the first request is running and a 422 when it had
   * another body.
   */
  once(request: KeyedRequest, work: (keep: Keeper) => Promise<KeptAnswer>): Promise<Answer>;
}

const UNREADABLE = 'The first answer to this Idempotency-Key can no longer be read.';
/** The request in the way may have been refused, and its key be free, by the time it is looked for. */
const TRIES_MAX = 3;

/**
 * Answers are kept encrypted: some hold secrets that no other answer shows.
 * @param deps.onError called when a key could not be freed at once
 */
export function createIdempotency(deps: {
  pool: Pool;
  secrets: SecretBox;
  onError: (error: unknown) => void;
}): Idempotency {
  const { pool, secrets, onError } = deps;
  const releases = new KeyReleases((claims) => releaseKeys(pool, claims), onError);

  function repeated({ hasSameBody, answerCiphertext }: KnownKey): Answer {
    if (!hasSameBody) throw new KeyOfAnotherBodyError();
    if (answerCiphertext === null) throw new KeyInUseError();
    const answer = readAnswer(secrets, answerCiphertext);
    return { ...answer, headers: { ...answer.headers, 'idempotent-replay': 'true' } };
  }

  function keeperOf(claim: Claim): Keeper {
    const { id } = claim;
    const encrypted = (answer: Answer) => secrets.encrypt(JSON.stringify(answer));
    const kept = (answer: Answer, isMine: boolean) => {
      if (!isMine) throw new KeyInUseError();
      return answer as KeptAnswer;
    };
    return {
      withoutKey: null,
      within: async (transaction, answer) =>
        kept(answer, await keepAnswer(transaction, claim, encrypted(answer))),
      async withinPrisma(transaction, answer) {
        const { count } = await transaction.idempotencyKey.updateMany({
          where: { id, claim: claim.claim },
          data: { answerCiphertext: encrypted(answer) },
        });
        return kept(answer, count > 0);
      },
    };
  }

  /** Whether this request now has the key. A claim whose result is lost may have been committed. */
  async function claimed(claim: Claim): Promise<boolean> {
    try {
      return await claimKey(pool, claim);
    } catch (error) {
      releases.releaseLater(claim);
      throw error;
    }
  }

  async function workOrRelease(
    claim: Claim,
    { gate }: KeyedRequest,
    work: (keep: Keeper) => Promise<KeptAnswer>,
  ): Promise<Answer> {
    gate.onShut(() => void releases.release(claim));
    try {
      return await work(keeperOf(claim));
    } catch (error) {
      await releases.release(claim);
      throw error;
    }
  }

  return {
    async once(request, work) {
      const claim = claimOf(request);
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        if (await claimed(claim)) return await workOrRelease(claim, request, work);
        const known = await findKey(pool, claim);
        if (known) return repeated(known);
      }
      throw new KeyInUseError();
    },
  };
}

function claimOf({ principal, request, key, body }: KeyedRequest): Claim {
  const who = principal.kind === 'user' ? ['user', principal.userId] : ['token', principal.tokenId];
  return {
    id: sha256(JSON.stringify([who, request, key])).toString('hex'),
    bodyHash: sha256(JSON.stringify(body) ?? ''),
    claim: randomUUID(),
  };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** A key that was taken out of `ENCRYPTION_KEYS` within the day makes it unreadable: better refused than done twice. */
function readAnswer(secrets: SecretBox, ciphertext: string): Answer {
  try {
    return JSON.parse(secrets.decrypt(ciphertext)) as Answer;
  } catch (error) {
    if (error instanceof SecretBoxError) throw new ConflictError(UNREADABLE);
    throw error;
  }
}

/** What is known of a key that another request holds or held. */
export interface KnownKey {
  hasSameBody: boolean;
  /** Null while the first request is running. */
  answerCiphertext: string | null;
}

// A day after its first request a key is as good as new. A request that has run for a minute died with its process,
// before its work was committed; should it live, it finds that the key is another's. The key goes to the same body only.
const CLAIM = `
  INSERT INTO idempotency_keys AS k (id, body_hash, claim, claimed_until, expires_at)
  VALUES ($1, $2, $3, now() + interval '${CLAIM_MS} ms', now() + interval '24 hours')
  ON CONFLICT (id) DO UPDATE
  SET body_hash = EXCLUDED.body_hash, claim = EXCLUDED.claim, claimed_until = EXCLUDED.claimed_until,
    expires_at = EXCLUDED.expires_at, answer_ciphertext = NULL
  WHERE k.expires_at <= now()
    OR (k.answer_ciphertext IS NULL AND k.claimed_until <= now() AND k.body_hash = EXCLUDED.body_hash)
  RETURNING id`;

async function claimKey(pool: Pool, { id, bodyHash, claim }: Claim): Promise<boolean> {
  return (await runStatement(pool, CLAIM, [id, bodyHash, claim])).length > 0;
}

const FIND = `
  SELECT body_hash = $2 AS "hasSameBody", answer_ciphertext AS "answerCiphertext" FROM idempotency_keys WHERE id = $1`;

const KNOWN_KEY = { hasSameBody: column.flag, answerCiphertext: column.orNull(column.text) };

async function findKey(pool: Pool, { id, bodyHash }: Claim): Promise<KnownKey | null> {
  return (await queryRows(pool, KNOWN_KEY, FIND, [id, bodyHash]))[0] ?? null;
}

const KEEP = `UPDATE idempotency_keys SET answer_ciphertext = $3 WHERE id = $1 AND claim = $2 RETURNING id`;

/** Keeps the answer to the request that holds the key; false when it is another's. */
async function keepAnswer(
  transaction: Transaction,
  { id, claim }: Claim,
  answerCiphertext: string,
): Promise<boolean> {
  return (await runStatement(transaction, KEEP, [id, claim, answerCiphertext])).length > 0;
}

// A row with a stored response belongs to work that was committed although its response was lost. The statement waits for a
// commit that is under way. Work that has not reached its commit yet finds its key deleted and rolls back.
const RELEASE = `
  DELETE FROM idempotency_keys k
  USING unnest($1::text[], $2::text[]) AS ended (id, claim)
  WHERE k.id = ended.id AND k.claim = ended.claim AND k.answer_ciphertext IS NULL`;

/** Frees the keys as if they had never been used, unless their work was committed. */
async function releaseKeys(pool: Pool, claims: readonly Claim[]): Promise<void> {
  await runStatement(pool, RELEASE, [claims.map(({ id }) => id), claims.map(({ claim }) => claim)]);
}
