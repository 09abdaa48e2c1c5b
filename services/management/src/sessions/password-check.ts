import { randomBytes } from 'node:crypto';
import { hash, verify as verifyArgon2 } from '@node-rs/argon2';
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
 * Argon2id, with the parameters that passwords are stored with; few at once, the others in the order in which they came.
 * @param verify what does the work, and takes the time
 */
export async function createPasswordCheck(
  verify: (passwordHash: string, password: string) => Promise<boolean> = verifyArgon2,
): Promise<PasswordCheck> {
  const nobodysHash = await hash(randomBytes(32));
  const atOnce = new Semaphore(AT_ONCE_MAX);
  let here = 0;

  async function isRight(passwordHash: string | null, password: string): Promise<boolean> {
    const turn = atOnce.acquire();
    if (turn) await turn;
    try {
      const matches = await verify(passwordHash ?? nobodysHash, password);
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
