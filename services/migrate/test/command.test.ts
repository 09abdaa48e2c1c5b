import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { MIGRATION_NAMES, openDatabase } from '@runhook/database';
import { createTestDatabase, type TestDatabase } from '@runhook/testing';
import { runCommand } from '../src/command.ts';

let testDatabase: TestDatabase;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
});
afterEach(() => testDatabase.drop());

async function run(...args: string[]): Promise<{ exitCode: number; lines: string[] }> {
  let text = '';
  const exitCode = await runCommand({ databaseUrl: testDatabase.url }, args, (part) => {
    text += part;
  });
  return { exitCode, lines: text.split('\n').filter((line) => line !== '') };
}

async function onDatabase(text: string): Promise<void> {
  const database = openDatabase({ url: testDatabase.url });
  await database.pool.query(text);
  await database.close();
}

const latest = MIGRATION_NAMES.at(-1) ?? '';

test('the command status lists the state of each migration, and exits with 1 if one is missing', async () => {
  const { exitCode, lines } = await run('status');
  expect(exitCode).toBe(0);
  expect(lines.map((line) => line.split('  ').slice(0, 2))).toEqual(
    MIGRATION_NAMES.map((name) => [name, 'applied']),
  );
  await onDatabase('DROP TABLE _prisma_migrations');
  expect(await run('status')).toEqual({
    exitCode: 1,
    lines: MIGRATION_NAMES.map((name) => `${name}  missing`),
  });
});

test.each([
  ['--rolled-back', 'missing', 1],
  ['--applied', 'applied', 0],
])('the command resolve %s makes an interrupted migration %s', async (word, state, exitCode) => {
  await onDatabase(
    `UPDATE _prisma_migrations SET finished_at = NULL, logs = 'the words of the database'
     WHERE migration_name = '${latest}'`,
  );
  const before = await run('status');
  expect(before.exitCode).toBe(1);
  expect(before.lines.at(-2)).toContain(`${latest}  unresolved`);
  expect(before.lines.at(-1)).toBe('    the words of the database');
  const after = await run('resolve', word, latest);
  expect(after.exitCode).toBe(exitCode);
  expect(after.lines.find((line) => line.startsWith(latest))).toContain(`${latest}  ${state}`);
});

test('invalid arguments print the list of commands, and exit with 2', async () => {
  for (const args of [['help'], ['resolve'], ['resolve', '--applied'], ['status', 'now']])
    expect(await run(...args)).toMatchObject({
      exitCode: 2,
      lines: expect.arrayContaining([expect.stringContaining('resolve --applied <name>')]),
    });
});

test('the command resolve fails for an unknown migration', async () => {
  await expect(run('resolve', '--rolled-back', 'no_such')).rejects.toThrow('no_such');
});
