// SQL by hand: also runs where only runs are reported, and Prisma Client would load its query compiler there.
import { type Pool, runStatement } from '@runhook/database';

/** Bound of the memory: more tokens than an installation uses within one interval. */
const TOKENS_MAX = 100_000;

/** Writes each token at most once per minute, and never waits for a row that another transaction has locked. */
const UPDATE_LAST_USES = `
  UPDATE service_tokens SET last_used_at = now()
  WHERE id IN (
    SELECT id FROM service_tokens
    WHERE id = ANY ($1::bigint[]) AND (last_used_at IS NULL OR last_used_at <= now() - interval '1 minute')
    FOR UPDATE SKIP LOCKED)`;

/** Records the last use of service tokens in the background, so that it neither delays nor fails a request. */
export class TokenUses {
  readonly #pool: Pool;
  readonly #usedIds = new Set<number>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  add(tokenId: number): void {
    if (this.#usedIds.size < TOKENS_MAX) this.#usedIds.add(tokenId);
  }

  /** Writes the uses since the last call. If it rejects, the next call writes them. */
  async flush(): Promise<void> {
    if (this.#usedIds.size === 0) return;
    const ids = [...this.#usedIds];
    this.#usedIds.clear();
    try {
      await runStatement(this.#pool, UPDATE_LAST_USES, [ids]);
    } catch (error) {
      for (const id of ids) this.add(id);
      throw error;
    }
  }
}
