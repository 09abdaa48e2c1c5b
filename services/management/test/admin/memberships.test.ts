import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createAccount, createUser } from '@runhook/database';
import { testSecrets } from '@runhook/testing';
import { putMembership, removeMembership } from '../../src/identity/administration.ts';
import { type CommandLine, openCommandLine } from './command-line.ts';

let commandLine: CommandLine;
let account: { id: number; identifier: string };
let user: { id: number; email: string };
let users = 0;

beforeAll(async () => {
  commandLine = await openCommandLine();
});

afterAll(() => commandLine.close());

beforeEach(async () => {
  const { prisma } = commandLine.database;
  account = await createAccount(prisma, { name: 'Acme', plan: 'team', deployment: 'multi_tenant' });
  users += 1;
  const email = `member${users}@example.com`;
  const { id } = await createUser(prisma, testSecrets, { email, name: 'Member', password: 'pass phrase' });
  user = { id, email };
});

const membership = () =>
  commandLine.database.prisma.membership.findUnique({
    where: { accountId_userId: { accountId: BigInt(account.id), userId: BigInt(user.id) } },
  });

test('membership add creates a membership, and repeated changes only the options that it names', async () => {
  const names = `--account ${account.identifier} --user ${user.email.toUpperCase()}`;
  const command = `membership add ${names} --license developer --permission-set admin --permission-set job_runner`;
  const added = { account_id: account.id, user_id: user.id, license: 'developer' };
  expect(await commandLine.json(command)).toEqual({
    ...added,
    permission_sets: ['admin', 'job_runner'],
    is_new: true,
  });
  expect(await commandLine.jsonInProcess(command)).toEqual({
    ...added,
    permission_sets: ['admin', 'job_runner'],
    is_new: false,
  });

  const change = `membership add --account ${account.id} --user ${user.id}`;
  expect(await commandLine.jsonInProcess(`${change} --license it`)).toMatchObject({
    license: 'it',
    permission_sets: ['admin', 'job_runner'],
  });
  expect(await commandLine.jsonInProcess(`${change} --permission-set developer`)).toMatchObject({
    license: 'it',
    permission_sets: ['developer'],
  });
  expect(await commandLine.jsonInProcess(`${change} --no-permission-set`)).toMatchObject({
    permission_sets: [],
  });
  expect(await membership()).toMatchObject({ license: 'it', permissionSets: [] });
});

test('a new member without options gets the licence read_only and no permission set', async () => {
  const ran = await commandLine.run(`membership add --account ${account.id} --user ${user.id}`);
  expect(ran.stdout).toBe(
    `${user.email} is now a member of account ${account.id} (Acme): licence read_only, permission sets: none.\n`,
  );
});

test('user list shows the members of an account with licence and permission sets', async () => {
  await commandLine.jsonInProcess(
    `membership add --account ${account.id} --user ${user.id} --permission-set member`,
  );
  const initial = { account_id: account.id, license: 'read_only', permission_sets: ['member'] };
  expect(await commandLine.jsonInProcess(`user list --account ${account.identifier}`)).toEqual([
    { ...user, name: 'Member', memberships: [initial] },
  ]);
  const { stdout } = await commandLine.run(`user list --account ${account.id}`);
  expect(stdout).toContain(`${account.id} (read_only, member)`);
});

test('concurrent calls create one complete membership, and concurrent removals remove it once', async () => {
  const { prisma } = commandLine.database;
  const key = { accountId: account.id, userId: user.id };
  for (let round = 0; round < 5; round += 1) {
    const results = await Promise.all([
      putMembership(prisma, key, { license: 'developer' }),
      putMembership(prisma, key, { permissionSets: ['admin'] }),
      putMembership(prisma, key, {}),
    ]);
    expect(results.filter(({ is_new }) => is_new)).toHaveLength(1);
    expect(await membership()).toMatchObject({ license: 'developer', permissionSets: ['admin'] });
    const removed = await Promise.all([removeMembership(prisma, key), removeMembership(prisma, key)]);
    expect(removed.sort()).toEqual([false, true]);
  }
});

test('a membership can be removed only once', async () => {
  const names = `--account ${account.id} --user ${user.email}`;
  await commandLine.jsonInProcess(`membership add ${names}`);
  expect(await commandLine.jsonInProcess(`membership remove ${names}`)).toEqual({
    account_id: account.id,
    user_id: user.id,
    removed: true,
  });
  expect(await membership()).toBeNull();
  expect(await commandLine.failure(`membership remove ${names}`)).toEqual({
    exitCode: 1,
    code: 'not_found',
    message: `--user: ${user.email} is not a member of account ${account.id}.`,
  });
});

test.each([
  ['--account 999999 --user 1', 1, '--account: there is no account 999999.'],
  ['--account ACCOUNT --user nobody@example.com', 1, '--user: there is no user nobody@example.com.'],
  ['--account ACCOUNT --user Ada', 2, '--user must be the id or the e-mail address of a user.'],
  ['--account ACCOUNT --user USER --license gold', 2, '--license must be one of developer, read_only, it.'],
  [
    '--account ACCOUNT --user USER --permission-set admin --permission-set owner',
    2,
    '--permission-set must be one of account_admin, admin, developer, member, read_only, job_runner.',
  ],
])(
  'membership add %s fails with a sentence and creates no membership',
  async (options, exitCode, message) => {
    const command = options.replace('ACCOUNT', String(account.id)).replace('USER', String(user.id));
    expect(await commandLine.failure(`membership add ${command}`)).toMatchObject({ exitCode, message });
    expect(await membership()).toBeNull();
  },
);
