import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createAccount } from '@runhook/database';
import { type CommandLine, openCommandLine, runInProcess, runProgram } from './command-line.ts';

let commandLine: CommandLine;

beforeAll(async () => {
  commandLine = await openCommandLine();
});

afterAll(() => commandLine.close());

const COMMANDS = [
  'account create',
  'account list',
  'account update',
  'user create',
  'user list',
  'user reset-password',
  'user revoke-key',
  'user remove',
  'membership add',
  'membership remove',
  'token create',
  'token list',
  'token revoke',
  'secrets reencrypt',
  'queue stats',
  'queue failed',
  'queue retry',
  'delivery show',
  'delivery redeliver',
  'delivery cancel',
  'doctor',
];

describe('the help', () => {
  test('is the only output without a command, lists every group with examples, and needs no database', async () => {
    const ran = await runProgram([]);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    for (const group of ['account', 'user', 'membership', 'token', 'secrets', 'queue', 'delivery']) {
      expect(ran.stdout).toMatch(new RegExp(`^  ${group} `, 'm'));
    }
    expect(ran.stdout).toMatch(/Examples:\n.* account create --name Acme --plan enterprise/);
  });

  test('names the program as the operator called it', async () => {
    const { stdout } = await runInProcess(['token', '--help'], { env: { npm_lifecycle_event: 'admin' } });
    expect(stdout).toMatch(/^Usage: npm run admin -- token /);
    expect(stdout).toContain('  npm run admin -- token revoke --id 3');
  });

  test.each(COMMANDS)('of %s states purpose, options and an example', async (command) => {
    const ran = await runInProcess([...command.split(' '), '--help']);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    expect(ran.stdout).toContain(`${command} [options]`);
    expect(ran.stdout).toMatch(/\n\n[A-Z][\s\S]*\.\n\nOptions:/);
    expect(ran.stdout).toMatch(new RegExp(`Examples?:\n  .* ${command}`));
    expect(ran.stdout).toContain('--json');
  });

  test('names allowed values, defaults and required options', async () => {
    const { stdout } = await runInProcess(['account', 'create', '--help']);
    const text = stdout.replace(/\s+/g, ' ');
    expect(text).toContain('one of free, developer, team, enterprise (required)');
    expect(text).toContain(
      'one of multi_tenant, single_tenant_public_cloud, single_tenant_private (default: multi_tenant)',
    );
  });
});

describe('an invalid command line', () => {
  test.each([
    ['acount list', /^error: unknown command 'acount' \(Did you mean account\?\)$/m],
    ['account lst', /^error: unknown command 'lst' \(Did you mean list\?\)$/m],
    ['account list --pln free', /^error: unknown option '--pln' \(Did you mean --plan\?\)$/m],
    ['account list free', /^error: too many arguments/m],
    ['account update --account', /^error: option '--account <account>' argument missing$/m],
  ])('prints a sentence and exits with 2: %s', async (command, message) => {
    const ran = await runInProcess(command.split(' '));
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toMatch(message);
  });

  test('prints a JSON error with --json, also without a command', async () => {
    for (const args of [['--json'], ['account', '--json'], ['nonsense', '--json']]) {
      const ran = await runProgram(args);
      expect(ran).toMatchObject({ code: 2, stdout: '' });
      expect(JSON.parse(ran.stderr)).toEqual({ error: { code: 'usage', message: expect.any(String) } });
    }
  });
});

test('doctor works without a database and exits with 1 when a check failed', async () => {
  const ran = await runInProcess(['doctor', '--json'], {
    env: { DATABASE_URL: 'postgres://127.0.0.1:1/none' },
  });
  expect(ran).toMatchObject({ code: 1, stderr: '' });
  const database = { check: 'database', status: 'failed', message: 'cannot be reached (ECONNREFUSED)' };
  expect(JSON.parse(ran.stdout)).toContainEqual(expect.objectContaining(database));
});

describe('the command line', () => {
  const list = async (DATABASE_URL: string) => {
    const ran = await runInProcess(['account', 'list', '--json'], { env: { DATABASE_URL } });
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    return JSON.parse(ran.stderr).error;
  };

  test('explains what to do if DATABASE_URL is not set, and does not print the password of an invalid one', async () => {
    expect(await list('')).toMatchObject({
      code: 'environment',
      message: expect.stringMatching(/DATABASE_URL is not set.*npm start/),
    });
    expect(await list('mysql://x:secret@db')).toMatchObject({
      code: 'environment',
      message: expect.not.stringContaining('secret'),
    });
  });

  test('distinguishes why a database cannot be used and does not print its password', async () => {
    const url = new URL(commandLine.env.DATABASE_URL);
    // If the URL of the test server has no password, it gets one that must not be printed.
    const password = url.password || 'secret';
    url.password = password;
    const withChangedUrl = (change: (url: URL) => void) => {
      const changedUrl = new URL(url);
      change(changedUrl);
      return list(changedUrl.href);
    };
    const errors = await Promise.all([
      withChangedUrl((changedUrl) => {
        changedUrl.port = '1';
      }),
      withChangedUrl((changedUrl) => {
        changedUrl.pathname = '/runhook_of_nobody';
      }),
      withChangedUrl((changedUrl) => {
        changedUrl.pathname = '/template1';
      }),
    ]);
    expect(errors.map(({ code }) => code)).toEqual([
      'database_unavailable',
      'database_missing',
      'database_not_migrated',
    ]);
    expect(JSON.stringify(errors)).not.toContain(password);
  });
});

describe('the output of a command', () => {
  test('may be left unread: a reader that closes the pipe causes no error', async () => {
    for (let number = 0; number < 200; number += 1) {
      const name = `${number} ${'x'.repeat(240)}`;
      await createAccount(commandLine.database.prisma, { name, plan: 'free', deployment: 'multi_tenant' });
    }
    const main = new URL('../../dist/admin.js', import.meta.url).pathname;
    const child = spawn(process.execPath, [main, 'account', 'list'], { env: commandLine.env });
    child.stdout.destroy();
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const [code] = await once(child, 'close');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});
