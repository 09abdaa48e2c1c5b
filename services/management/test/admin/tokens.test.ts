import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hashCredential } from '@runhook/database';
import { type Harness, startHarness, type TestAccount } from '../harness.ts';
import {
  type CommandResult,
  documentOf,
  failureOf,
  type Json,
  runInProcess,
  runProgram,
} from './command-line.ts';

let harness: Harness;
let account: TestAccount;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
});

afterAll(() => harness.close());

const environment = () => ({ DATABASE_URL: harness.settings.databaseUrl });

/** Runs the built program. */
const json = async (command: string): Promise<Json> =>
  documentOf(command, await runProgram(`${command} --json`.split(' '), { env: environment() }));

/** Runs the command in this process. */
const run = (command: string): Promise<CommandResult> =>
  runInProcess(command.split(' '), { env: environment() });

const jsonInProcess = async (command: string): Promise<Json> =>
  documentOf(command, await runInProcess(`${command} --json`.split(' '), { env: environment() }));

const failure = (command: string) => failureOf(command.split(' '), { env: environment() });

const status = async (token: string) =>
  (await harness.call('GET', account.path('/subscriptions'), { token })).status;

test('a service token works with a running service and is rejected once it is revoked', async () => {
  const created = await json(`token create --account ${account.id} --name CI --permission-set read_only`);
  expect(await status(created.token)).toBe(200);

  const revoked = await jsonInProcess(`token revoke --id ${created.id}`);
  expect(await status(created.token)).toBe(401);
  const { token, ...createdView } = created;
  expect(revoked).toEqual({
    ...createdView,
    last_used_at: revoked.last_used_at,
    revoked_at: expect.any(String),
  });

  const secondRevocation = await run(`token revoke --id ${created.id}`);
  expect(secondRevocation).toMatchObject({ code: 0, stderr: '' });
  expect(secondRevocation.stdout).toContain(`was already revoked at ${revoked.revoked_at}`);
  expect(await jsonInProcess(`token revoke --id ${created.id}`)).toEqual(revoked);
});

test('a service token is shown only when it is created', async () => {
  const { token, ...created } = await jsonInProcess(
    `token create --account ${account.identifier} --name Shown --permission-set job_runner --permission-set admin --permission-set admin`,
  );
  expect(token).toMatch(/^rhs_/);
  expect(created).toEqual({
    id: expect.any(Number),
    account_id: account.id,
    name: 'Shown',
    permission_sets: ['admin', 'job_runner'],
    created_at: expect.any(String),
    expires_at: null,
    last_used_at: null,
    revoked_at: null,
  });
  const row = await harness.database.prisma.serviceToken.findUniqueOrThrow({
    where: { id: BigInt(created.id) },
  });
  expect(row.tokenHash).toEqual(hashCredential(token));

  expect(
    await jsonInProcess(`token list --account ${account.id} --name shown --permission-set admin`),
  ).toEqual([created]);
  const { stdout } = await run('token list');
  expect(stdout).toMatch(/^ID +ACCOUNT +NAME +PERMISSION SETS +CREATED +EXPIRES +LAST USED +REVOKED\n/);
  expect(stdout).toMatch(/Shown +admin, job_runner +\S+ +never +never +-\n/);
  expect(stdout).not.toContain(token);
});

test('token list filters by account', async () => {
  const otherAccount = await harness.newAccount();
  const created = await jsonInProcess(
    `token create --account ${otherAccount.id} --name Other --permission-set member`,
  );
  const list = await jsonInProcess(`token list --account ${otherAccount.identifier}`);
  expect(list.map(({ account_id }: Json) => account_id)).toEqual([otherAccount.id, otherAccount.id]);
  expect(list.map(({ id }: Json) => id)).toContain(created.id);
});

describe('token create', () => {
  const create = (expiry: string) =>
    jsonInProcess(
      `token create --account ${account.id} --name Expiring --permission-set read_only ${expiry}`,
    );

  test('sets the expiry that --expires-in names', async () => {
    const beforeMs = Date.now();
    const { expires_at, token } = await create('--expires-in 90d');
    const createdAtMs = Date.parse(expires_at) - 90 * 86_400_000;
    expect(createdAtMs).toBeGreaterThanOrEqual(beforeMs);
    expect(createdAtMs).toBeLessThanOrEqual(Date.now());
    expect(await status(token)).toBe(200);
  });

  test.each([
    ['2099-01-31', '2099-01-31T00:00:00.000Z'],
    ['2099-01-31T12:30+02:00', '2099-01-31T10:30:00.000Z'],
  ])('sets the expiry that --expires-at names: %s', async (expiresAt, stored) => {
    expect(await create(`--expires-at ${expiresAt}`)).toMatchObject({ expires_at: stored });
  });
});

test.each([
  ['--account 999999 --name x --permission-set admin', 1, '--account: there is no account 999999.'],
  ['--account 1 --name x', 2, "required option '--permission-set <set>' not specified"],
  ['--account 1 --name x --permission-set owner', 2, /^--permission-set must be one of /],
  ['--account 1 --permission-set admin --name TOO-LONG', 2, /^--name must be 1 to 255 characters/],
  ['--account 1 --name x --permission-set admin --expires-in 90', 2, /^--expires-in must be a number of /],
  ['--account 1 --name x --permission-set admin --expires-in 0d', 2, /^--expires-in must be a number of /],
  ['--account 1 --name x --permission-set admin --expires-in 9999w', 2, /3650 days at most/],
  [
    '--account 1 --name x --permission-set admin --expires-at tomorrow',
    2,
    /^--expires-at must be an ISO 8601/,
  ],
  ['--account 1 --name x --permission-set admin --expires-at 2099-02-30', 2, /^--expires-at must be an ISO/],
  [
    '--account 1 --name x --permission-set admin --expires-at 2020-01-01',
    2,
    '--expires-at must be in the future.',
  ],
  [
    '--account 1 --name x --permission-set admin --expires-in 1d --expires-at 2099-01-01',
    2,
    'Give --expires-in or --expires-at, not both.',
  ],
])('token create %s fails with a sentence and creates no token', async (options, exitCode, message) => {
  const beforeMs = await harness.database.prisma.serviceToken.count();
  expect(await failure(`token create ${options.replace('TOO-LONG', 'x'.repeat(256))}`)).toMatchObject({
    exitCode,
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  });
  expect(await harness.database.prisma.serviceToken.count()).toBe(beforeMs);
});

test('token revoke fails for a token that does not exist', async () => {
  expect(await failure('token revoke --id 999999')).toEqual({
    exitCode: 1,
    code: 'not_found',
    message: '--id: there is no token 999999.',
  });
});
