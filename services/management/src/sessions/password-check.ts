import { Semaphore } from '@runhook/runtime';

/** A place in the line of passwords to be checked. To be left whether it was used or not. */
export interface PasswordPlace {
  /** @param passwordHash null when there is nobody to have one; that takes as long as a wrong password */
  isRight(passwordHash: string | null, password: string): Promise<boolean>;
  leave(): void;
}

export interface PasswordCheck {
  /** Null when so many wait that another one would wait for seconds. */
  enter(): PasswordPlace | null;
}

/** Each takes tens of milliseconds of a thread, and 19 MiB. Name resolution and files need threads too, of which there are four. */
const AT_ONCE_MAX = 2;
/** With those that are checked: a second or two of work. */
const HERE_MAX = 32;

/**
 * Of 32 random bytes that nobody has kept, with the parameters that passwords are stored with. Made beforehand: each
 * process at rest would keep the memory of making one.
 */
export const NOBODYS_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$f0SnP4DBCefxte7NO+n/Vg$EC+oBrzvN4/EqAgemWfJmZ7vf5RI0pnoIpfwP8c4cZs';

/** Loaded by the first who signs in: most processes see nobody. */
async function verifyArgon2(passwordHash: string, password: string): Promise<boolean> {
  const { verify } = await import('@node-rs/argon2');
  return await verify(passwordHash, password);
}

/**
 * Argon2id, with the parameters that passwords are stored with; few at once, the others in the order in which they came.
 * @param verify what does the work, and takes the time
 */
export function createPasswordCheck(
  verify: (passwordHash: string, password: string) => Promise<boolean> = verifyArgon2,
): PasswordCheck {
  const atOnce = new Semaphore(AT_ONCE_MAX);
  let here = 0;

  async function isRight(passwordHash: string | null, password: string): Promise<boolean> {
    const turn = atOnce.acquire();
    if (turn) await turn;
    try {
      const matches = await verify(passwordHash ?? NOBODYS_HASH, password);
      return matches && passwordHash !== null;
    } finally {
      atOnce.release();
    }
  }

  return {
    enter() {
      if (here >= HERE_MAX) return null;
      here += 1;
      let hasLeft = false;
      return {
        isRight,
        leave() {
          if (!hasLeft) here -= 1;
          hasLeft = true;
        },
      };
    },
  };
}
