import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type CommandLine, openCommandLine } from './command-line.ts';

let commandLine: CommandLine;

beforeAll(async () => {
  commandLine = await openCommandLine();
});

afterAll(() => commandLine.close());

const countAccounts = () => commandLine.database.prisma.account.count();

test('an account is created, listed, and updated by id and by identifier', async () => {
  const created = await commandLine.json('account create --name Acme --plan enterprise');
  expect(created).toEqual({
    id: expect.any(Number),
    identifier: expect.stringMatching(/^act_\w{27}$/),
    name: 'Acme',
    plan: 'enterprise',
    deployment: 'multi_tenant',
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
  });
  expect(await commandLine.jsonInProcess('account list')).toContainEqual(created);

  const byId = await commandLine.jsonInProcess(`account update --account ${created.id} --plan team`);
  expect(byId).toEqual({ ...created, plan: 'team' });
  const byIdentifier = await commandLine.jsonInProcess([
    ...['account', 'update', '--account', created.identifier, '--name', 'Acme Ltd'],
    ...['--deployment', 'single_tenant_private'],
  ]);
  expect(byIdentifier).toEqual({ ...byId, name: 'Acme Ltd', deployment: 'single_tenant_private' });
});

test('account list filters by name, plan and deployment', async () => {
  const createAccount = (name: string, plan: string) =>
    commandLine.jsonInProcess(`account create --name ${name} --plan ${plan}`);
  await Promise.all([createAccount('Needle-1', 'free'), createAccount('Needle-2', 'team')]);
  const list = await commandLine.jsonInProcess(
    'account list --name nEEdle --plan team --deployment multi_tenant',
  );
  expect(list).toMatchObject([{ name: 'Needle-2' }]);
  expect(await commandLine.jsonInProcess('account list --name nobody')).toEqual([]);
});

test('account list prints an aligned table in which a name cannot add lines', async () => {
  const name = 'Broken\n\u001b[31mname';
  const created = await commandLine.run(['account', 'create', '--name', name, '--plan', 'free']);
  expect(created.stdout).toContain('The account has no webhooks: its plan is free.');
  const { stdout } = await commandLine.run('account list');
  const [heading = '', ...rows] = stdout.trimEnd().split('\n');
  expect(heading).toMatch(/^ID +IDENTIFIER +NAME +PLAN +DEPLOYMENT$/);
  expect(stdout).toContain('Broken\\u000a\\u001b[31mname');
  for (const row of rows) expect(row.slice(heading.indexOf('IDENTIFIER'))).toMatch(/^act_/);
});

test.each([
  ['--plan gold --name x', '--plan must be one of free, developer, team, enterprise.'],
  ['--plan free --name x --deployment moon', /^--deployment must be one of multi_tenant, /],
  ['--plan free --name TOO-LONG', /^--name must be 1 to 255 characters/],
  ['--plan free --name  ', /^--name must be 1 to 255 characters/],
  ['--plan free', "required option '--name <name>' not specified"],
  ['--name x', "required option '--plan <plan>' not specified"],
])('account create %s fails with a sentence and creates no account', async (options, message) => {
  const countBefore = await countAccounts();
  const failure = await commandLine.failure(`account create ${options.replace('TOO-LONG', 'x'.repeat(256))}`);
  expect(failure).toEqual({
    exitCode: 2,
    code: 'usage',
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  });
  expect(await countAccounts()).toBe(countBefore);
});

test('account update fails for an unknown account and without a change', async () => {
  expect(await commandLine.failure('account update --account 999999 --plan team')).toEqual({
    exitCode: 1,
    code: 'not_found',
    message: '--account: there is no account 999999.',
  });
  const unknown = `act_${'A'.repeat(27)}`;
  expect(await commandLine.failure(`account update --account ${unknown} --plan team`)).toMatchObject({
    code: 'not_found',
  });
  expect(await commandLine.failure('account update --account Acme --plan team')).toMatchObject({
    exitCode: 2,
    message: '--account must be the id or the identifier (act_…) of an account.',
  });
  expect(await commandLine.failure('account update --account 1')).toMatchObject({
    exitCode: 2,
    message: 'Nothing to change: give --name, --plan or --deployment.',
  });
});
