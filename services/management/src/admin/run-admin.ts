import { openDatabase, runStatement } from '@runhook/database';
import { CommanderError } from 'commander';
import type { Answer, Command } from './command.ts';
import { type AdminError, adminError, UsageError } from './errors.ts';
import type { Input } from './password.ts';
import { createProgram } from './program.ts';
import { readAdminSettings } from './settings.ts';
import { write } from './write.ts';

/** What a process brings. */
export interface Surroundings {
  env: NodeJS.ProcessEnv;
  stdin: Input;
  stdout: NodeJS.WritableStream;
  stderr: NodeJS.WritableStream;
}

/**
 * The operators' command line (DESIGN, section 7, "Identity"). Resolves with the exit code: 0, 1 for what could not be
 * done, 2 for a command line it does not take. Answers go to standard output, errors to standard error.
 */
export async function runAdmin(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr } = surroundings;
  const isJson = args.includes('--json');
  let answer: Answer = { json: undefined, text: '' };
  let help = '';
  const program = createProgram({
    name: programName(surroundings.env),
    onHelp(text) {
      help += text;
    },
    async execute(command, options) {
      answer = await runCommand(command, options, surroundings);
    },
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    await write(stdout, isJson ? JSON.stringify(answer.json, null, 2) : answer.text);
    return answer.exitCode ?? 0;
  } catch (thrown) {
    const isHelp = thrown instanceof CommanderError && /^commander\.help/.test(thrown.code);
    if (isHelp && (thrown.exitCode === 0 || !isJson)) {
      await write(stdout, help.trimEnd());
      return 0;
    }
    const error = isHelp ? new UsageError('Name a command; --help shows them.') : adminError(thrown);
    await write(stderr, isJson ? errorJson(error) : errorText(error));
    return error.exitCode;
  }
}

async function runCommand(command: Command, options: object, { env, stdin }: Surroundings): Promise<Answer> {
  command.check?.(options as never);
  const { databaseUrl, encryptionKeys = [] } = readAdminSettings(env, {
    needsKeys: command.needsKeys ?? false,
  });
  const database = openDatabase({ url: databaseUrl, connectionsMax: 2 });
  try {
    // Prisma wraps what is wrong with the connection in errors of its own; asked plainly first, it says what it is.
    await runStatement(database.pool, 'SELECT FROM accounts LIMIT 0', []);
    return await command.run(options as never, { ...database, encryptionKeys, stdin });
  } finally {
    await database.close();
  }
}

function errorJson({ code, message }: AdminError): string {
  return JSON.stringify({ error: { code, message } });
}

function errorText(error: AdminError): string {
  const hint = error instanceof UsageError ? '\nAdd --help to see what the command takes.' : '';
  return `error: ${error.message}${hint}`;
}

/** The script of the root package.json, or this program in a container. */
function programName(env: NodeJS.ProcessEnv): string {
  return env.npm_lifecycle_event === 'admin'
    ? 'npm run admin --'
    : 'node services/management/dist/admin/main.js';
}
