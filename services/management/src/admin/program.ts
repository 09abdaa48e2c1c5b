import { type EncryptionKey, parseEncryptionKeys, requireSchema } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { queueBackendName, queueUrlWithLogin } from '@runhook/queue';
import { environmentRules, parseSettings, type SettingsOf } from '@runhook/runtime';
import { Command as Commander, CommanderError, type Option } from 'commander';
import Joi from 'joi';
import { accountGroup, membershipGroup } from './accounts.ts';
import {
  type AdminError,
  adminError,
  type Command,
  type CommandGroup,
  type CommandResult,
  type CommandWithoutDatabase,
  UsageError,
  write,
} from './command.ts';
import { deliveryGroup } from './deliveries.ts';
import { doctorCommand } from './doctor.ts';
import { queueGroup } from './queue.ts';
import { secretsGroup } from './secrets.ts';
import { tokenGroup } from './token.ts';
import { type Input, userGroup } from './users.ts';

const GROUPS = [
  accountGroup,
  userGroup,
  membershipGroup,
  tokenGroup,
  secretsGroup,
  queueGroup,
  deliveryGroup,
];

const DESCRIPTION =
  'Administers Runhook: accounts, users, memberships, service tokens, secrets at rest, the queue, deliveries. Uses the database of DATABASE_URL, or that of a running `npm start`.';

const EXAMPLES = [
  'account create --name Acme --plan enterprise',
  'user create --email ada@example.com --name "Ada Lovelace"',
  'membership add --account 1 --user ada@example.com --license developer --permission-set admin',
  'token create --account 1 --name CI --permission-set job_runner --expires-in 90d',
  'token list --account 1 --json',
  'queue stats',
];

type AnyCommand = Command | CommandWithoutDatabase;

export interface ProgramOptions {
  /** Name of the program as the operator called it, for the help. */
  name: string;
  /** Called with the text of the help only; errors are thrown. */
  onHelp: (text: string) => void;
  execute: (command: AnyCommand, options: object) => Promise<void>;
}

/** Returns the parser of the command line. It throws `CommanderError` and the errors of the parsers of values. */
function createProgram({ name, onHelp, execute }: ProgramOptions): Commander {
  const program = new Commander(name)
    .description(DESCRIPTION)
    .option('--json', 'print one JSON document for scripts; errors as JSON to standard error')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true, optionDescription: describeOption })
    .configureOutput({ writeOut: onHelp, writeErr: onHelp, outputError: () => undefined })
    .addHelpText('after', examplesText(name, EXAMPLES));
  for (const group of GROUPS) addGroup(program, group, name, execute);
  addCommand(program, doctorCommand as AnyCommand, name, execute);
  return program;
}

function addGroup(
  program: Commander,
  group: CommandGroup,
  name: string,
  execute: ProgramOptions['execute'],
): void {
  const parent = program.command(group.name).description(group.summary);
  const examples = group.commands.flatMap(({ examples: [first] }) => (first === undefined ? [] : [first]));
  parent.addHelpText('after', examplesText(name, examples));
  for (const command of group.commands) addCommand(parent, command, name, execute);
}

function addCommand(
  parent: Commander,
  command: AnyCommand,
  name: string,
  execute: ProgramOptions['execute'],
): void {
  const child = parent
    .command(command.name)
    .summary(command.summary)
    .description(command.description)
    .addHelpText('after', examplesText(name, command.examples));
  for (const option of command.options) child.addOption(option);
  child.action((options: object) => execute(command, options));
}

/** Returns the help text of an option, with its default, or marked as required. */
function describeOption(option: Option): string {
  const { description, mandatory, defaultValue } = option;
  if (mandatory && defaultValue === undefined) return `${description} (required)`;
  return defaultValue === undefined ? description : `${description} (default: ${defaultValue})`;
}

function examplesText(name: string, examples: readonly string[]): string {
  return `\n${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((example) => `  ${name} ${example}`).join('\n')}`;
}

/** Environment and streams of the process. */
export interface ProcessContext {
  env: NodeJS.ProcessEnv;
  stdin: Input;
  stdout: NodeJS.WritableStream;
  stderr: NodeJS.WritableStream;
}

/**
 * Runs the operators' command line (docs/administration.md). Resolves with the exit code: 0, 1 for a failed command, 2
 * for an invalid command line. Output goes to standard output, errors to standard error.
 */
export async function runAdmin(args: readonly string[], context: ProcessContext): Promise<number> {
  const { stdout, stderr } = context;
  const isJson = args.includes('--json');
  let result: CommandResult = { json: undefined, text: '' };
  let help = '';
  const program = createProgram({
    name: programName(context.env),
    onHelp(text) {
      help += text;
    },
    async execute(command, options) {
      result = await runCommand(command, options, context);
    },
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    await write(stdout, isJson ? JSON.stringify(result.json, null, 2) : result.text);
    return result.exitCode ?? 0;
  } catch (thrown) {
    const isHelp = thrown instanceof CommanderError && /^commander\.help/.test(thrown.code);
    if (isHelp && (thrown.exitCode === 0 || !isJson)) {
      await write(stdout, help.trimEnd());
      return 0;
    }
    const error = isHelp ? new UsageError('Missing command; see --help.') : adminError(thrown);
    await write(stderr, isJson ? errorJson(error) : errorText(error));
    return error.exitCode;
  }
}

/**
 * Timeout for a connection to the database: longer than that of the service, since an operator prefers waiting to
 * trying again.
 */
const CONNECT_TIMEOUT_MS = 10_000;

async function runCommand(
  command: AnyCommand,
  options: object,
  { env, stdin }: ProcessContext,
): Promise<CommandResult> {
  if ('runWithoutDatabase' in command) return await command.runWithoutDatabase(options as never, env);
  command.check?.(options as never);
  const { databaseUrl, queueUrl, encryptionKeys = [] } = readAdminSettings(env, command);
  const database = openPrismaDatabase({
    url: databaseUrl,
    connectionsMax: 2,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
  });
  try {
    // Checks the connection first, because Prisma hides its problems in other errors.
    await requireSchema(database.pool);
    return await command.run(options as never, {
      ...database,
      encryptionKeys,
      ...(queueUrl === undefined ? {} : { queueUrl }),
      stdin,
    });
  } finally {
    await database.close();
  }
}

function errorJson({ code, message }: AdminError): string {
  return JSON.stringify({ error: { code, message } });
}

function errorText(error: AdminError): string {
  const hint = error instanceof UsageError ? '\nSee --help for the options of the command.' : '';
  return `error: ${error.message}${hint}`;
}

/** Returns how the help calls this program: by the script of the root package.json, or by its file in a container. */
function programName(env: NodeJS.ProcessEnv): string {
  return env.npm_lifecycle_event === 'admin' ? 'npm run admin --' : 'node services/management/dist/admin.js';
}

const { parsedBy, postgresUrl } = environmentRules;

interface Environment {
  DATABASE_URL: string;
  /** Only commands on the queue need it. */
  QUEUE_URL?: string;
  /** Newest first. Only commands that encrypt or decrypt need them. */
  ENCRYPTION_KEYS?: EncryptionKey[];
}

export type AdminSettings = SettingsOf<Environment>;

const schema = Joi.object<Environment>({
  DATABASE_URL: postgresUrl().required().messages({
    'any.required':
      'DATABASE_URL is not set, and no `npm start` is running whose database could be used: start it first, or set DATABASE_URL',
  }),
  QUEUE_URL: parsedBy((url) => queueBackendName(url) && url),
  ENCRYPTION_KEYS: parsedBy(parseEncryptionKeys),
});

const MISSING_MESSAGES = {
  ENCRYPTION_KEYS: 'ENCRYPTION_KEYS is not set: this command requires the keys of the services',
  QUEUE_URL: 'QUEUE_URL is not set: this command requires the queue of the services',
};

/** Throws an `EnvironmentError` that lists all problems. */
function readAdminSettings(
  source: NodeJS.ProcessEnv,
  { needsKeys, needsQueue, usesQueue }: Pick<Command, 'needsKeys' | 'needsQueue' | 'usesQueue'>,
): AdminSettings {
  const requiredNames = [
    ...(needsKeys ? (['ENCRYPTION_KEYS'] as const) : []),
    ...(needsQueue ? (['QUEUE_URL'] as const) : []),
  ];
  const commandSchema = requiredNames.reduce(
    (rules, name) =>
      rules.fork(name, (rule) => rule.required().messages({ 'any.required': MISSING_MESSAGES[name] })),
    schema,
  );
  // An invalid QUEUE_URL must not prevent commands that do not use the queue.
  const { QUEUE_URL: _, ...withoutQueue } = source;
  const settings = parseSettings<Environment>(commandSchema, needsQueue || usesQueue ? source : withoutQueue);
  const { databaseUrl, queueUrl } = settings;
  return queueUrl === undefined
    ? settings
    : { ...settings, queueUrl: queueUrlWithLogin(queueUrl, databaseUrl) };
}
