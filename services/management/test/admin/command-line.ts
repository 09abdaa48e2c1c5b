import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, testEncryptionKeysText, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { runAdmin } from '../../src/admin/program.ts';

// biome-ignore lint/suspicious/noExplicitAny: an answer as a script reads it
export type Json = any;

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  env?: NodeJS.ProcessEnv;
  /** Standard input. */
  input?: string | Buffer;
}

const MAIN = fileURLToPath(new URL('../../dist/admin.js', import.meta.url));

/** Runs the built program as a container does, with only the passed environment. */
export function runProgram(
  args: readonly string[],
  { env = {}, input = '' }: RunOptions = {},
): Promise<CommandResult> {
  const child = spawn(process.execPath, [MAIN, ...args], { env });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  // The program may reject the command before it has read its input.
  child.stdin.on('error', () => undefined).end(input);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...output }));
  });
}

/** Runs the command in this process, which is faster for the many rejected commands. */
export async function runInProcess(
  args: readonly string[],
  { env = {}, input = '' }: RunOptions = {},
): Promise<CommandResult> {
  const output = { stdout: '', stderr: '' };
  const collect = (name: 'stdout' | 'stderr') =>
    new Writable({
      write(chunk, _encoding, done) {
        output[name] += chunk;
        done();
      },
    });
  const stdin = Readable.from([Buffer.from(input)]);
  const code = await runAdmin(args, { env, stdin, stdout: collect('stdout'), stderr: collect('stderr') });
  return { code, ...output };
}

export interface Failure {
  exitCode: number | null;
  code: string;
  message: string;
}

/** Returns the JSON document of a successful command. */
export function documentOf(command: string, { code, stdout, stderr }: CommandResult): Json {
  if (code !== 0 || stderr !== '') throw new Error(`${command}: ${code} ${stderr}`);
  return JSON.parse(stdout);
}

/** Returns the JSON error of a failed command, and its exit code. */
export async function failureOf(args: readonly string[], options: RunOptions): Promise<Failure> {
  const { code: exitCode, stdout, stderr } = await runInProcess([...args, '--json'], options);
  if (stdout !== '') throw new Error(`${args.join(' ')} answered: ${stdout}`);
  return { exitCode, ...JSON.parse(stderr).error };
}

/** The command line with its own database. */
export interface CommandLine {
  database: PrismaDatabase;
  env: { DATABASE_URL: string; ENCRYPTION_KEYS: string };
  /** Runs the command in this process, which takes a tenth of the time. */
  run(command: string | readonly string[], options?: RunOptions): Promise<CommandResult>;
  /** Runs the built program in a separate process. */
  program(command: string | readonly string[], options?: RunOptions): Promise<CommandResult>;
  /** Returns the JSON document of a successful command of the built program. */
  json(command: string | readonly string[], options?: RunOptions): Promise<Json>;
  /** Returns the JSON document of a successful command in this process. */
  jsonInProcess(command: string | readonly string[], options?: RunOptions): Promise<Json>;
  failure(command: string | readonly string[], options?: RunOptions): Promise<Failure>;
  close(): Promise<void>;
}

/** @param command words, or one string if no word contains a space */
const splitCommand = (command: string | readonly string[]) =>
  typeof command === 'string' ? command.split(' ') : command;

export async function openCommandLine(): Promise<CommandLine> {
  const testDatabase = await createTestDatabase();
  const database = openPrismaDatabase({
    url: testDatabase.url,
    connectionsMax: 2,
    connectTimeoutMs: WAIT_TIMEOUT_MS,
  });
  const env = { DATABASE_URL: testDatabase.managementUrl, ENCRYPTION_KEYS: testEncryptionKeysText };
  const withEnv = (options: RunOptions = {}) => ({ ...options, env: { ...env, ...options.env } });
  const program: CommandLine['program'] = (command, options) =>
    runProgram(splitCommand(command), withEnv(options));
  const run: CommandLine['run'] = (command, options) => runInProcess(splitCommand(command), withEnv(options));
  return {
    database,
    env,
    run,
    program,
    json: async (command, options) =>
      documentOf(String(command), await program([...splitCommand(command), '--json'], options)),
    jsonInProcess: async (command, options) =>
      documentOf(String(command), await run([...splitCommand(command), '--json'], options)),
    failure: (command, options) => failureOf(splitCommand(command), withEnv(options)),
    async close() {
      await database.close();
      await testDatabase.drop();
    },
  };
}
