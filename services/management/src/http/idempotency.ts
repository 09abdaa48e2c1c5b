// SQL by hand: one statement claims a key or takes over an expired one.
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
import type { CommitGuard } from './commit-guard.ts';
import type { EndpointResponse } from './envelope.ts';
import { ConflictError, IdempotencyKeyReusedError, KeyInUseError } from './errors.ts';
import { CLAIM_MS, type Claim, KeyReleases } from './key-releases.ts';

/** A request with an `Idempotency-Key`. */
export interface KeyedRequest {
  principal: Principal;
  /** Method, path pattern and path parameters, which include the account. */
  request: unknown;
  key: string;
  /** The parsed body: differences in white space do not matter. */
  body: unknown;
  /** The request's commit guard: once it is cancelled, nothing can be committed, so the key can be released. */
  commitGuard: Pick<CommitGuard, 'onCancel'>;
}

declare const RECORDED: unique symbol;

/** A response that went through a {@link ResponseRecorder}. The compiler requires it of all endpoints that write. */
export type RecordedResponse = EndpointResponse & { readonly [RECORDED]: true };

/**
 * Stores the response in the transaction of the request's work, so that a repeat finds both or neither, even if the
 * result of COMMIT is lost. Stores nothing for a request without a key. Throws a 409 if another request has taken over
 * the key, so that this request's work is not committed.
 */
export interface ResponseRecorder {
  /** For work that may be committed in a batch with that of others; null if the work needs a separate transaction. */
  readonly batch: BatchRecorder | null;
  /** Must be the last statement of a transaction with SQL by hand. */
  record(transaction: Transaction, response: EndpointResponse): Promise<RecordedResponse>;
  /** Must be the last statement of a transaction with Prisma Client. */
  recordWithPrisma(
    transaction: Prisma.TransactionClient,
    response: EndpointResponse,
  ): Promise<RecordedResponse>;
}

/** The two steps of {@link ResponseRecorder.record}, for work without a separate transaction. */
export interface BatchRecorder {
  /** Must be called immediately before the work is sent to be committed. Throws if the caller has been rejected. */
  beforeCommit(): void;
  /** Accepts the response of work that was committed or changed nothing. */
  accept(response: EndpointResponse): RecordedResponse;
}

/** For a request without a key. */
export const NO_RECORDING: ResponseRecorder = {
  batch: { beforeCommit: () => {}, accept: (response) => response as RecordedResponse },
  record: async (_transaction, response) => response as RecordedResponse,
  recordWithPrisma: async (_transaction, response) => response as RecordedResponse,
};

/** For a request without a key that needs a separate transaction. */
export const NO_RECORDING_UNBATCHED: ResponseRecorder = { ...NO_RECORDING, batch: null };

/** Makes the recorder pass the request's commit guard, because the commit follows the stored response. */
export function withCommitCheck(beforeCommit: () => void, recorder: ResponseRecorder): ResponseRecorder {
  const confirmCommit = (response: RecordedResponse) => {
    beforeCommit();
    return response;
  };
  const { batch } = recorder;
  return {
    batch: batch && { ...batch, beforeCommit },
    record: async (transaction, response) => confirmCommit(await recorder.record(transaction, response)),
    recordWithPrisma: async (transaction, response) =>
      confirmCommit(await recorder.recordWithPrisma(transaction, response)),
  };
}

export interface Idempotency {
  /**
   * Runs the work unless the principal used the key on this path within 24 hours: then returns the stored response with
   * `Idempotent-Replay`. Only successful responses are stored. A rejected or failed request has changed nothing, so its
   * key is released, at once or when the database is available again. Throws a 409 while the first request is running,
   * and a 422 if its body was different.
   */
  runOnce(
    request: KeyedRequest,
    work: (recorder: ResponseRecorder) => Promise<RecordedResponse>,
  ): Promise<EndpointResponse>;
}

const UNREADABLE_MESSAGE = 'The stored response to this Idempotency-Key can no longer be read.';
/** The request that owns the key may fail and release it between the claim and the read, so both are retried. */
const TRIES_MAX = 3;

/**
 * Encrypts stored responses, since some contain secrets that no other response shows.
 * @param deps.onError called when a key could not be released at once
 */
export function createIdempotency(deps: {
  pool: Pool;
  secrets: SecretBox;
  onError: (error: unknown) => void;
}): Idempotency {
  const { pool, secrets, onError } = deps;
  const releases = new KeyReleases((claims) => releaseKeys(pool, claims), onError);

  function replayResponse({ hasSameBody, responseCiphertext }: ClaimedKey): EndpointResponse {
    if (!hasSameBody) throw new IdempotencyKeyReusedError();
    if (responseCiphertext === null) throw new KeyInUseError();
    const response = decryptResponse(secrets, responseCiphertext);
    return { ...response, headers: { ...response.headers, 'idempotent-replay': 'true' } };
  }

  function createRecorder(claim: Claim): ResponseRecorder {
    const { id } = claim;
    const encryptResponse = (response: EndpointResponse) => secrets.encrypt(JSON.stringify(response));
    const recordedResponse = (response: EndpointResponse, isOwner: boolean) => {
      if (!isOwner) throw new KeyInUseError();
      return response as RecordedResponse;
    };
    return {
      batch: null,
      record: async (transaction, response) =>
        recordedResponse(response, await storeResponse(transaction, claim, encryptResponse(response))),
      async recordWithPrisma(transaction, response) {
        const { count } = await transaction.idempotencyKey.updateMany({
          where: { id, claim: claim.claim },
          data: { responseCiphertext: encryptResponse(response) },
        });
        return recordedResponse(response, count > 0);
      },
    };
  }

  /** Whether this request now owns the key. A claim whose result is lost may have been committed, so it is released. */
  async function tryClaim(claim: Claim): Promise<boolean> {
    try {
      return await claimKey(pool, claim);
    } catch (error) {
      releases.releaseLater(claim);
      throw error;
    }
  }

  async function runOrRelease(
    claim: Claim,
    { commitGuard }: KeyedRequest,
    work: (recorder: ResponseRecorder) => Promise<RecordedResponse>,
  ): Promise<EndpointResponse> {
    commitGuard.onCancel(() => void releases.release(claim));
    try {
      return await work(createRecorder(claim));
    } catch (error) {
      await releases.release(claim);
      throw error;
    }
  }

  return {
    async runOnce(request, work) {
      const claim = claimOf(request);
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        if (await tryClaim(claim)) return await runOrRelease(claim, request, work);
        const claimedKey = await findKey(pool, claim);
        if (claimedKey) return replayResponse(claimedKey);
      }
      throw new KeyInUseError();
    },
  };
}

function claimOf({ principal, request, key, body }: KeyedRequest): Claim {
  const principalKey = principal.kind === 'user' ? ['user', principal.userId] : ['token', principal.tokenId];
  return {
    id: sha256(JSON.stringify([principalKey, request, key])).toString('hex'),
    bodyHash: sha256(JSON.stringify(body) ?? ''),
    claim: randomUUID(),
  };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Decrypts a stored response. If its encryption key was removed, throws a 409 instead of executing again. */
function decryptResponse(secrets: SecretBox, ciphertext: string): EndpointResponse {
  try {
    return JSON.parse(secrets.decrypt(ciphertext)) as EndpointResponse;
  } catch (error) {
    if (error instanceof SecretBoxError) throw new ConflictError(UNREADABLE_MESSAGE);
    throw error;
  }
}

/** State of a key that another request has claimed. */
export interface ClaimedKey {
  hasSameBody: boolean;
  /** Null while the first request is running. */
  responseCiphertext: string | null;
}

// A key expires a day after its first request. A claim older than a minute belongs to a process that died before the
// commit; if it still runs, it finds that it has lost the key. Only a request with the same body takes it over.
const CLAIM = `
  INSERT INTO idempotency_keys AS k (id, body_hash, claim, claimed_until, expires_at)
  VALUES ($1, $2, $3, now() + interval '${CLAIM_MS} ms', now() + interval '24 hours')
  ON CONFLICT (id) DO UPDATE
  SET body_hash = EXCLUDED.body_hash, claim = EXCLUDED.claim, claimed_until = EXCLUDED.claimed_until,
    expires_at = EXCLUDED.expires_at, response_ciphertext = NULL
  WHERE k.expires_at <= now()
    OR (k.response_ciphertext IS NULL AND k.claimed_until <= now() AND k.body_hash = EXCLUDED.body_hash)
  RETURNING id`;

async function claimKey(pool: Pool, { id, bodyHash, claim }: Claim): Promise<boolean> {
  return (await runStatement(pool, CLAIM, [id, bodyHash, claim])).length > 0;
}

const SELECT_KEY = `
  SELECT body_hash = $2 AS "hasSameBody", response_ciphertext AS "responseCiphertext" FROM idempotency_keys WHERE id = $1`;

const CLAIMED_KEY_COLUMNS = { hasSameBody: column.flag, responseCiphertext: column.orNull(column.text) };

async function findKey(pool: Pool, { id, bodyHash }: Claim): Promise<ClaimedKey | null> {
  return (await queryRows(pool, CLAIMED_KEY_COLUMNS, SELECT_KEY, [id, bodyHash]))[0] ?? null;
}

const STORE_RESPONSE = `UPDATE idempotency_keys SET response_ciphertext = $3 WHERE id = $1 AND claim = $2 RETURNING id`;

/** Stores the response if the request still owns the key; returns whether it does. */
async function storeResponse(
  transaction: Transaction,
  { id, claim }: Claim,
  responseCiphertext: string,
): Promise<boolean> {
  return (await runStatement(transaction, STORE_RESPONSE, [id, claim, responseCiphertext])).length > 0;
}

// A row with a stored response belongs to work that was committed although its response was lost. The statement waits
// for a commit that is in progress. Work that has not reached its commit yet finds its key deleted and rolls back.
const RELEASE = `
  DELETE FROM idempotency_keys k
  USING unnest($1::text[], $2::text[]) AS ended (id, claim)
  WHERE k.id = ended.id AND k.claim = ended.claim AND k.response_ciphertext IS NULL`;

/** Releases the keys as if they had never been used, unless their work was committed. */
async function releaseKeys(pool: Pool, claims: readonly Claim[]): Promise<void> {
  await runStatement(pool, RELEASE, [claims.map(({ id }) => id), claims.map(({ claim }) => claim)]);
}
