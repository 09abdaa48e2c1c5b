import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { verify } from '@node-rs/argon2';
import { addMembership, createAccount, createUser, credentialKind, hashCredential } from '@runhook/database';
import { testSecrets } from '@runhook/testing';
import { runAdmin } from '../../src/admin/program.ts';
import { type CommandLine, openCommandLine } from './command-line.ts';

let commandLine: CommandLine;

beforeAll(async () => {
  commandLine = await openCommandLine();
});

afterAll(() => commandLine.close());

const rowOf = (email: string) => commandLine.database.prisma.user.findUniqueOrThrow({ where: { email } });

async function isPasswordOf(email: string, password: string): Promise<boolean> {
  return await verify((await rowOf(email)).passwordHash ?? '', password);
}

const createTestUser = (email: string) =>
  createUser(commandLine.database.prisma, testSecrets, {
    email,
    name: 'Somebody',
    password: 'the old password',
  });

test('user create makes a password and an API key and shows them only once', async () => {
  const created = await commandLine.json([
    'user',
    'create',
    '--email',
    'Ada@Example.com',
    '--name',
    'Ada Lovelace',
  ]);
  expect(created).toEqual({
    id: expect.any(Number),
    email: 'ada@example.com',
    name: 'Ada Lovelace',
    password: expect.stringMatching(/^[\w-]{20}$/),
    api_key: expect.stringMatching(/^rhu_/),
  });
  expect(credentialKind(created.api_key)).toBe('user');
  expect(await isPasswordOf('ada@example.com', created.password)).toBe(true);
  const row = await rowOf('ada@example.com');
  expect(row.apiKeyHash).toEqual(hashCredential(created.api_key));
  expect(testSecrets.decrypt(row.apiKeyCiphertext)).toBe(created.api_key);

  const { stdout } = await commandLine.run('user list');
  expect(stdout).toContain('ada@example.com');
  expect(stdout).not.toContain(created.password);
  expect(stdout).not.toContain(created.api_key);
});

test('a password from standard input is stored without its line break and not printed', async () => {
  const password = 'ein längeres Kennwort ';
  const ran = await commandLine.program('user create --email bob@example.com --name Bob --password-stdin', {
    input: `${password}\r\n`,
  });
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  expect(ran.stdout).not.toContain('Kennwort');
  expect(ran.stdout).toMatch(/API key +rhu_/);
  expect(await isPasswordOf('bob@example.com', password)).toBe(true);
});

test.each([
  ['too short', 'short\n', /8 to 1000 characters/],
  ['nothing', '', /8 to 1000 characters/],
  ['too long', 'x'.repeat(1_001), /8 to 1000 characters/],
  ['endless', 'x'.repeat(1_000_000), /8 to 1000 characters/],
  ['of two lines', 'first line\nsecond line\n', /one line/],
  ['with NUL', 'secret\0secret', /one line without control characters/],
  ['common', 'ILoveYou\n', /too common/],
  ['of a word of this product', 'Runhook2026!\n', /too common/],
  ['not UTF-8', Buffer.from([...Buffer.alloc(10, 0x61), 0xff]), /UTF-8/],
])('a password from standard input that is %s is rejected', async (_what, input, message) => {
  const command = 'user create --email nobody@example.com --name Nobody --password-stdin';
  const failure = await commandLine.failure(command, { input });
  expect(failure).toMatchObject({ exitCode: 2, code: 'usage', message: expect.stringMatching(message) });
  expect(failure.message).not.toMatch(/secret/);
  expect(await commandLine.database.prisma.user.count({ where: { email: 'nobody@example.com' } })).toBe(0);
});

test('a password is not read from a terminal, which would show it', async () => {
  const stdin = Object.assign(Readable.from(['a long password\n']), { isTTY: true });
  let stderr = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      stderr += chunk;
      done();
    },
  });
  const args = 'user create --email tty@example.com --name X --password-stdin'.split(' ');
  expect(await runAdmin(args, { env: commandLine.env, stdin, stdout: sink, stderr: sink })).toBe(2);
  expect(stderr).toMatch(/standard input is a terminal/);
});

test('an e-mail address belongs to one user, regardless of case', async () => {
  await createTestUser('carol@example.com');
  const rowBefore = await rowOf('carol@example.com');
  expect(await commandLine.failure('user create --email CAROL@example.com --name Other')).toEqual({
    exitCode: 1,
    code: 'email_taken',
    message: '--email: the user carol@example.com already exists.',
  });
  expect(await rowOf('carol@example.com')).toEqual(rowBefore);
});

test.each([
  ['--email nonsense --name X', /^--email must be an e-mail address/],
  ['--email TOO-LONG@example.com --name X', /^--email must be an e-mail address/],
  ['--email x@example.com --name TOO-LONG', /^--name must be 1 to 255 characters/],
  ['--name X', /'--email <address>' not specified/],
])('user create %s fails with a sentence that names the option', async (options, message) => {
  expect(
    await commandLine.failure(`user create ${options.replace('TOO-LONG', 'x'.repeat(256))}`),
  ).toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(message),
  });
});

test('a password on the command line is rejected and not printed', async () => {
  for (const args of [
    '--password=hunter2hunter2',
    '--password hunter2hunter2',
    '--password-stdin hunter2hunter2',
  ]) {
    const failure = await commandLine.failure(`user create --email x@example.com --name X ${args}`);
    expect(failure.exitCode).toBe(2);
    expect(failure.message).not.toContain('hunter2');
  }
});

test('a password reset by e-mail or id ends the sessions of that user only and keeps the API key', async () => {
  const dora = await createTestUser('dora@example.com');
  const otherUser = await createTestUser('other@example.com');
  const openSession = (userId: number, idHash: string) =>
    commandLine.database.prisma.consoleSession.create({
      data: {
        idHash: Buffer.from(idHash),
        userId: BigInt(userId),
        expiresAt: new Date(Date.now() + 3_600_000),
      },
    });
  await Promise.all([openSession(dora.id, 'a'), openSession(dora.id, 'b'), openSession(otherUser.id, 'c')]);

  const reset = await commandLine.json('user reset-password --email DORA@example.com');
  expect(reset).toEqual({
    id: dora.id,
    email: 'dora@example.com',
    password: expect.stringMatching(/^[\w-]{20}$/),
    sessions_ended: 2,
  });
  expect(await isPasswordOf('dora@example.com', reset.password)).toBe(true);
  expect(await isPasswordOf('dora@example.com', 'the old password')).toBe(false);
  expect((await rowOf('dora@example.com')).apiKeyHash).toEqual(hashCredential(dora.apiKey));
  const remainingSessions = await commandLine.database.prisma.consoleSession.findMany();
  expect(remainingSessions.map(({ userId }) => Number(userId))).toEqual([otherUser.id]);

  const ran = await commandLine.run(`user reset-password --id ${dora.id} --password-stdin`, {
    input: 'another password\n',
  });
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  expect(ran.stdout).not.toContain('another password');
  expect(await isPasswordOf('dora@example.com', 'another password')).toBe(true);
});

test('a password reset fails unless it names one existing user', async () => {
  expect(await commandLine.failure('user reset-password --email missing@example.com')).toEqual({
    exitCode: 1,
    code: 'not_found',
    message: '--email: there is no user missing@example.com.',
  });
  expect(await commandLine.failure('user reset-password --id 999999')).toMatchObject({ code: 'not_found' });
  for (const options of ['', ' --id 1 --email x@example.com']) {
    expect(await commandLine.failure(`user reset-password${options}`)).toMatchObject({
      exitCode: 2,
      message: 'Give either --email or --id.',
    });
  }
  expect(await commandLine.failure('user reset-password --id x')).toMatchObject({
    exitCode: 2,
    message: '--id must be an id: a whole number from 1.',
  });
});

test('user revoke-key replaces the API key by one that the operator does not see, and keeps the password', async () => {
  const { id, apiKey } = await createTestUser('fay@example.com');
  const { passwordHash } = await rowOf('fay@example.com');
  expect(await commandLine.jsonInProcess('user revoke-key --email FAY@example.com')).toEqual({
    id,
    email: 'fay@example.com',
  });
  const row = await rowOf('fay@example.com');
  const newKey = testSecrets.decrypt(row.apiKeyCiphertext);
  expect(newKey).not.toBe(apiKey);
  expect(row).toMatchObject({ passwordHash, apiKeyHash: hashCredential(newKey) });
  const { stdout } = await commandLine.run(`user revoke-key --id ${id}`);
  expect(stdout).toMatch(/was revoked/);
  expect(stdout).not.toContain('rhu_');
});

test('user remove deletes the user and what belongs to it, and audit entries stay readable', async () => {
  const { prisma } = commandLine.database;
  const { id } = await createTestUser('gus@example.com');
  const account = await createAccount(prisma, {
    name: 'Acme',
    plan: 'team',
    deployment: 'multi_tenant',
  });
  await addMembership(prisma, {
    accountId: account.id,
    userId: id,
    license: 'developer',
    permissionSets: ['admin'],
  });
  const idHash = Buffer.from('gus');
  await prisma.consoleSession.create({ data: { idHash, userId: BigInt(id), expiresAt: new Date() } });

  expect(await commandLine.jsonInProcess('user remove --email gus@example.com')).toEqual({
    id,
    email: 'gus@example.com',
    memberships_removed: 1,
    sessions_ended: 1,
  });
  expect(await prisma.user.findUnique({ where: { id: BigInt(id) } })).toBeNull();
  expect(await prisma.consoleSession.findUnique({ where: { idHash } })).toBeNull();
  const entries = await prisma.auditEntry.findMany({
    where: { accountId: BigInt(account.id) },
    orderBy: { id: 'asc' },
  });
  const target = { targetId: String(id), targetName: 'gus@example.com', actorKind: 'operator' };
  expect(entries).toMatchObject([
    { action: 'member.added', ...target },
    { action: 'session.signed_in', ...target, actorKind: 'user', actorName: 'gus@example.com' },
    { action: 'member.removed', ...target },
  ]);
  expect(await commandLine.failure('user remove --email gus@example.com')).toMatchObject({
    exitCode: 1,
    code: 'not_found',
  });
});

test.each(['revoke-key', 'remove'])('user %s fails unless it names one user', async (name) => {
  expect(await commandLine.failure(`user ${name}`)).toMatchObject({
    exitCode: 2,
    message: 'Give either --email or --id.',
  });
});

test('user list filters by e-mail and name', async () => {
  const { id } = await createTestUser('erin@narrow.example');
  expect(await commandLine.jsonInProcess('user list --email NARROW --name some')).toEqual([
    { id, email: 'erin@narrow.example', name: 'Somebody', memberships: [] },
  ]);
  expect(await commandLine.jsonInProcess('user list --email narrow --name nobody')).toEqual([]);
});

test('user link replaces the password by the identity provider, until user unlink', async () => {
  const email = 'linked@example.com';
  const { id } = await createTestUser(email);
  const identity = { issuer: 'https://login.example.com', subject: '00u1' };
  const link = `user link --email ${email} --issuer ${identity.issuer} --subject ${identity.subject}`;
  expect(await commandLine.jsonInProcess(link)).toEqual({ id, email, ...identity });
  expect((await rowOf(email)).passwordHash).toBeNull();
  expect(await commandLine.failure(link)).toMatchObject({ exitCode: 1, code: 'already_linked' });
  expect(await commandLine.failure(`user reset-password --email ${email}`)).toEqual({
    exitCode: 1,
    code: 'oidc_user',
    message: `The user ${email} signs in at ${identity.issuer} and has no password here. user unlink ends that.`,
  });
  expect(await commandLine.jsonInProcess(`user unlink --email ${email}`)).toEqual({ id, email });
  expect(await commandLine.failure(`user unlink --email ${email}`)).toMatchObject({ code: 'not_linked' });
  await commandLine.jsonInProcess(`user reset-password --email ${email}`);
  expect((await rowOf(email)).passwordHash).toEqual(expect.any(String));
});
