import { addMembership, createAccount, createUser } from '@runhook/database';
import type { PrismaDatabase } from '@runhook/database/prisma';
import { seedAccount, type TestAccount, testSecrets } from '@runhook/testing';

export const PASSWORD = 'correct horse battery staple';

/**
 * Users of a world: `ada` has all permissions, in four accounts; `rita` has read-only access, on Enterprise; `tom` has
 * read-only access, without a Developer license on Team; `fred` is on the Free plan, `petra` on a private deployment;
 * `nina` is a member of no account.
 */
export type PersonName = 'ada' | 'rita' | 'tom' | 'fred' | 'petra' | 'nina';

export interface Person {
  id: number;
  name: string;
  email: string;
  apiKey: string;
}

export interface People {
  persons: Record<PersonName, Person>;
  accounts: {
    /** "Test account", with two jobs. */
    enterprise: TestAccount;
    team: { id: number };
    free: { id: number };
    private: { id: number };
  };
}

const NAMES: Record<PersonName, string> = {
  ada: 'Ada Lovelace',
  rita: 'Rita Reader',
  tom: 'Tom Teamer',
  fred: 'Fred Free',
  petra: 'Petra Private',
  nina: 'Nina Nowhere',
};

let domains = 0;

/**
 * Creates the users with memberships of every kind. Each call has a separate domain, because e-mail addresses are unique in a
 * database.
 */
export async function seedPeople(database: PrismaDatabase): Promise<People> {
  const { prisma } = database;
  domains += 1;
  const domain = `world-${domains}.example.com`;
  const account = (name: string, plan: 'team' | 'free' | 'enterprise') =>
    createAccount(prisma, {
      name,
      plan,
      deployment: plan === 'enterprise' ? 'single_tenant_private' : 'multi_tenant',
    });
  const accounts = {
    enterprise: await seedAccount(database),
    team: await account('Borealis', 'team'),
    free: await account('Corner shop', 'free'),
    private: await account('Deep vault', 'enterprise'),
  };
  const persons = Object.fromEntries(
    await Promise.all(
      Object.entries(NAMES).map(async ([key, name]) => {
        const email = `${key}@${domain}`;
        const user = await createUser(prisma, testSecrets, { email, name, password: PASSWORD });
        return [key, { ...user, name, email }] as const;
      }),
    ),
  ) as Record<PersonName, Person>;
  const join = (
    person: PersonName,
    to: { id: number },
    license: 'developer' | 'read_only',
    permissionSets: ('account_admin' | 'read_only')[],
  ) => addMembership(prisma, { accountId: to.id, userId: persons[person].id, license, permissionSets });
  await join('ada', accounts.enterprise, 'developer', ['account_admin']);
  await join('ada', accounts.team, 'developer', ['account_admin']);
  await join('ada', accounts.free, 'developer', ['account_admin']);
  await join('ada', accounts.private, 'developer', ['account_admin']);
  await join('rita', accounts.enterprise, 'read_only', ['read_only']);
  await join('tom', accounts.team, 'read_only', ['account_admin']);
  await join('fred', accounts.free, 'developer', ['account_admin']);
  await join('petra', accounts.private, 'developer', ['account_admin']);
  return { persons, accounts };
}
