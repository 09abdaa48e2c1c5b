import { Semaphore } from '@runhook/runtime';

/** A slot in the queue of password checks. The caller must call release() whether it was used or not. */
export interface PasswordCheckSlot {
  /** @param passwordHash null if there is none; the check then takes as long as for a wrong password */
  isCorrect(passwordHash: string | null, password: string): Promise<boolean>;
  release(): void;
}

export interface PasswordCheck {
  /** Returns null if the queue is full, since another check would wait for seconds. */
  acquireSlot(): PasswordCheckSlot | null;
}

/**
 * Number of concurrent checks. Each takes tens of milliseconds of one of four threads, which name resolution and files
 * use as well, and 19 MiB.
 */
const CONCURRENT_MAX = 2;
/** Maximum number of checks that run or wait: one or two seconds of work. */
const QUEUED_MAX = 32;

/**
 * Hash of 32 random bytes that were discarded, with the parameters of stored passwords. It is a constant, because a
 * process that computed it would retain the memory of Argon2.
 */
export const DUMMY_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$f0SnP4DBCefxte7NO+n/Vg$EC+oBrzvN4/EqAgemWfJmZ7vf5RI0pnoIpfwP8c4cZs';

/** Loads Argon2 with the first sign-in, since most processes never handle one. */
async function verifyArgon2(passwordHash: string, password: string): Promise<boolean> {
  const { verify } = await import('@node-rs/argon2');
  return await verify(passwordHash, password);
}

/**
 * Checks passwords with Argon2id, with the parameters of stored ones; a few concurrently, the others in order.
 * @param verify performs the slow check
 */
export function createPasswordCheck(
  verify: (passwordHash: string, password: string) => Promise<boolean> = verifyArgon2,
): PasswordCheck {
  const semaphore = new Semaphore(CONCURRENT_MAX);
  let queuedCount = 0;

  async function isCorrect(passwordHash: string | null, password: string): Promise<boolean> {
    const acquired = semaphore.acquire();
    if (acquired) await acquired;
    try {
      const matches = await verify(passwordHash ?? DUMMY_HASH, password);
      return matches && passwordHash !== null;
    } finally {
      semaphore.release();
    }
  }

  return {
    acquireSlot() {
      if (queuedCount >= QUEUED_MAX) return null;
      queuedCount += 1;
      let isReleased = false;
      return {
        isCorrect,
        release() {
          if (!isReleased) queuedCount -= 1;
          isReleased = true;
        },
      };
    },
  };
}
