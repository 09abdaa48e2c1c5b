import { type AccountReference, findAccount } from '../data/administration/accounts.ts';
import { findUser, type UserReference } from '../data/administration/users.ts';
import type { AccountView } from '../domain/account-view.ts';
import type { Resources } from './command.ts';
import { NotFoundError } from './errors.ts';

type Pool = Resources['pool'];

/** Throws a {@link NotFoundError} that names the option. */
export async function accountNamed(pool: Pool, reference: AccountReference): Promise<AccountView> {
  const account = await findAccount(pool, reference);
  if (account !== null) return account;
  const [name] = Object.values(reference);
  throw new NotFoundError(`--account: there is no account ${name}.`);
}

/** Throws a {@link NotFoundError} that names the option. */
export async function userNamed(
  pool: Pool,
  reference: UserReference,
  option = '--user',
): Promise<{ id: number; email: string; name: string }> {
  const user = await findUser(pool, reference);
  if (user !== null) return user;
  const [name] = Object.values(reference);
  throw new NotFoundError(`${option}: there is no user ${name}.`);
}
