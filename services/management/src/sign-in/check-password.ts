import { randomBytes } from 'node:crypto';
import { hash, verify as verifyArgon2 } from '@node-rs/argon2';

export interface PasswordCheck {
  /** Whether it has so much to do that another check would only make everything wait. */
  busy(): boolean;
  /** @param passwordHash null when there is nobody to have one; that takes as long as a wrong password */
  isRight(passwordHash: string | null, password: string): Promise<boolean>;
}

/** Each takes tens of milliseconds of a thread that name resolution and files need too, and 19 MiB. */
const AT_ONCE_MAX = 16;

/**
 * Argon2id, with the parameters that passwords are stored with.
 * @param verify what does the work, and takes the time
 */
export async function createPasswordCheck(
  verify: (passwordHash: string, password: string) => Promise<boolean> = verifyArgon2,
): Promise<PasswordCheck> {
  const nobodysHash = await hash(randomBytes(32));
  let running = 0;
  return {
    busy: () => running >= AT_ONCE_MAX,
    async isRight(passwordHash, password) {
      running++;
      try {
        const matches = await verify(passwordHash ?? nobodysHash, password);
        return matches && passwordHash !== null;
      } finally {
        running--;
      }
    },
  };
}
