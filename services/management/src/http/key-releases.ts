import { isDatabaseUnavailable } from '@runhook/database';

/** A request's claim on its `Idempotency-Key`. */
export interface Claim {
  /** Identifies the principal, the request and the key. */
  id: string;
  bodyHash: Uint8Array;
  /** Random token of this request: if another request takes over the key, this one cannot release it any more. */
  claim: string;
}

/** Time after which a claim expires. */
export const CLAIM_MS = 60_000;
const RETRY_MS = 500;
/** Maximum number of claims whose release is retried, of some 200 bytes each. Others expire after {@link CLAIM_MS}. */
const PENDING_MAX = 10_000;

/**
 * Releases the keys of requests that have ended without a commit. While the database is unavailable, retries until it
 * is available or the claims have expired.
 */
export class KeyReleases {
  readonly #release: (claims: readonly Claim[]) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  /** Claims that could not be released yet, each with the time at which it expires, by `performance.now()`. */
  readonly #pending = new Map<Claim, number>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param release must not free the key of a claim whose work was committed
   * @param onError called once for each claim that could not be released at once
   */
  constructor(release: (claims: readonly Claim[]) => Promise<void>, onError: (error: unknown) => void) {
    this.#release = release;
    this.#onError = onError;
  }

  /** Never rejects. */
  async release(claim: Claim): Promise<void> {
    try {
      await this.#release([claim]);
    } catch (error) {
      this.#onError(error);
      if (isDatabaseUnavailable(error)) this.releaseLater(claim);
    }
  }

  releaseLater(claim: Claim): void {
    if (this.#pending.size >= PENDING_MAX) return;
    this.#pending.set(claim, performance.now() + CLAIM_MS);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#pending.size === 0) return;
    this.#timer = setTimeout(() => void this.#retry(), RETRY_MS * (0.5 + Math.random()));
    this.#timer.unref();
  }

  async #retry(): Promise<void> {
    const claims = [...this.#pending.keys()];
    try {
      await this.#release(claims);
      for (const claim of claims) this.#pending.delete(claim);
    } catch {
      for (const [claim, expiresAtMs] of this.#pending)
        if (performance.now() > expiresAtMs) this.#pending.delete(claim);
    }
    this.#timer = undefined;
    this.#schedule();
  }
}
