import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import Joi from 'joi';
import { EnvironmentError, parseSettings } from '../src/index.ts';

interface Environment {
  DATABASE_URL: string;
  PORT: number;
}

const schema = Joi.object<Environment>({
  DATABASE_URL: Joi.string()
    .pattern(/^postgres:/, 'postgres:// URL')
    .required(),
  PORT: Joi.number().port().default(3000),
});

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'runhook-variables-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function writeTestFile(content: string | Buffer): Promise<string> {
  const path = join(folder, 'value');
  await writeFile(path, content);
  return path;
}

function problemsOf(source: NodeJS.ProcessEnv): readonly string[] {
  try {
    parseSettings(schema, source);
  } catch (error) {
    if (error instanceof EnvironmentError) return error.problems;
    throw error;
  }
  throw new Error('the environment was accepted');
}

test('a variable is read from the file that its _FILE names, without the line break at the end', async () => {
  const path = await writeTestFile('postgres://u:p@db/x\r\n');
  expect(parseSettings(schema, { DATABASE_URL_FILE: path, PORT: '1' })).toEqual({
    databaseUrl: 'postgres://u:p@db/x',
    port: 1,
  });
});

test('the content of a file is validated like any value and not repeated in messages', async () => {
  const path = await writeTestFile('mysql://secret');
  expect(problemsOf({ DATABASE_URL_FILE: path })).toEqual(['DATABASE_URL is not a valid postgres:// URL']);
});

test('a variable that is set both ways is rejected as ambiguous', async () => {
  const path = await writeTestFile('postgres://db/x');
  expect(problemsOf({ DATABASE_URL: 'postgres://db/y', DATABASE_URL_FILE: path })).toEqual([
    'DATABASE_URL and DATABASE_URL_FILE are both set; set one of them',
  ]);
});

test('an empty _FILE counts as not set, and so does an empty variable if its _FILE is set', async () => {
  const path = await writeTestFile('postgres://db/x');
  expect(parseSettings(schema, { DATABASE_URL: 'postgres://db/y', DATABASE_URL_FILE: '' }).databaseUrl).toBe(
    'postgres://db/y',
  );
  expect(parseSettings(schema, { DATABASE_URL: '', DATABASE_URL_FILE: path }).databaseUrl).toBe(
    'postgres://db/x',
  );
});

test('a file that is missing, empty or too large is reported with all other problems and without its path', async () => {
  const missing = join(folder, 'missing');
  expect(problemsOf({ DATABASE_URL_FILE: missing, PORT: 'x' })).toEqual([
    'DATABASE_URL_FILE: the file cannot be read (ENOENT)',
    'PORT must be a number',
  ]);
  expect(problemsOf({ DATABASE_URL_FILE: await writeTestFile('\n') })).toEqual([
    'DATABASE_URL_FILE: the file is empty',
  ]);
  expect(problemsOf({ DATABASE_URL_FILE: await writeTestFile(Buffer.alloc(70_000, 'a')) })).toEqual([
    'DATABASE_URL_FILE: the file is larger than 65536 bytes',
  ]);
});

test('a file that the process may not read is reported with its error code', async () => {
  const path = await writeTestFile('postgres://db/x');
  await chmod(path, 0o000);
  // The superuser may read everything: a folder in the file's place is unreadable for everyone.
  const source = { DATABASE_URL_FILE: process.getuid?.() === 0 ? folder : path };
  expect(problemsOf(source)[0]).toMatch(/^DATABASE_URL_FILE: the file cannot be read \((EACCES|EISDIR)\)$/);
});
