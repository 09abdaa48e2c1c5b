import { FairSlots, type SlotRequest } from './fair-slots.ts';

/** A slot for one password check. The caller must call release() exactly once. */
export interface PasswordCheckSlot {
  /** @param passwordHash null if there is none; the check then takes as long as for a wrong password */
  isCorrect(passwordHash: string | null, password: string): Promise<boolean>;
  release(): void;
}

/** A request for a slot. Sign-ins of recognized devices have separate slots, which no other client can occupy. */
export type PasswordCheckRequest = SlotRequest & { isRecognized: boolean };

export interface PasswordCheck {
  /** Waits for a slot. Resolves with null if too many checks are queued. */
  acquireSlot(request: PasswordCheckRequest): Promise<PasswordCheckSlot | null>;
}

/**
 * Concurrent checks. Each takes tens of milliseconds of one of four threads, which name resolution and files use as
 * well, and 19 MiB.
 */
const CONCURRENT_MAX = { recognized: 1, other: 2 };
/** Maximum number of checks that wait: about one second of work. */
const WAITING_MAX = { recognized: 32, other: 128 };

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
 * Checks passwords with Argon2id, with the parameters of stored ones.
 * @param verify performs the slow check
 */
export function createPasswordCheck(
  verify: (passwordHash: string, password: string) => Promise<boolean> = verifyArgon2,
): PasswordCheck {
  const slotsOf = (kind: 'recognized' | 'other') =>
    new FairSlots({ concurrency: CONCURRENT_MAX[kind], waitingMax: WAITING_MAX[kind] });
  const [recognized, other] = [slotsOf('recognized'), slotsOf('other')];

  async function isCorrect(passwordHash: string | null, password: string): Promise<boolean> {
    const matches = await verify(passwordHash ?? DUMMY_HASH, password);
    return matches && passwordHash !== null;
  }

  return {
    async acquireSlot({ isRecognized, ...request }) {
      const slots = isRecognized ? recognized : other;
      return (await slots.acquire(request)) ? { isCorrect, release: () => slots.release() } : null;
    },
  };
}
