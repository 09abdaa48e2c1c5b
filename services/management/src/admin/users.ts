import { randomBytes } from 'node:crypto';
import { createSecretBox, createUser } from '@runhook/database';
import { isRejection, type PrismaClient } from '@runhook/database/prisma';
import { table } from '@runhook/runtime/terminal-text';
import { type AccountReference, listUsers, type UserMembershipView } from '../identity/administration.ts';
import {
  PASSWORD_LIMITS,
  passwordProblem,
  removeUser,
  resetPassword,
  revokeApiKey,
} from '../identity/users.ts';
import {
  AdminError,
  type Command,
  type CommandGroup,
  NotFoundError,
  requiredOption,
  UsageError,
  valueOption,
} from './command.ts';
import { link, requireUnlinked, unlink } from './identities.ts';
import {
  accountOption,
  nameFilter,
  optionValues,
  passwordStdinFlag,
  requireUser,
  resolveAccount,
} from './options.ts';

const create: Command<{ email: string; name: string; passwordStdin?: boolean }> = {
  name: 'create',
  summary: 'create a user, with a password and an API key',
  description:
    'Creates a user without a membership (see membership add). The API key and a generated password are shown only once.',
  options: [
    requiredOption('--email <address>', 'address for signing in; stored in lower case', optionValues.email),
    requiredOption('--name <name>', 'up to 255 characters', optionValues.name),
    passwordStdinFlag(),
  ],
  examples: [
    'user create --email ada@example.com --name "Ada Lovelace"',
    'user create --email ada@example.com --name Ada --password-stdin < password.txt',
  ],
  needsKeys: true,
  async run({ email, name, ...choice }, { prisma, encryptionKeys, stdin }) {
    const { password, isGenerated } = await choosePassword(choice, stdin);
    const { id, apiKey } = await createUser(prisma, createSecretBox(encryptionKeys), {
      email,
      name,
      password,
    }).catch((error) => {
      if (!isRejection(error, 'P2002')) throw error;
      throw new AdminError('email_taken', `--email: the user ${email} already exists.`);
    });
    return {
      json: { id, email, name, ...(isGenerated ? { password } : {}), api_key: apiKey },
      text: [
        `Created user ${id}, ${email}.`,
        '',
        ...(isGenerated ? [`  password  ${password}`] : []),
        `  API key   ${apiKey}`,
        '',
        `${isGenerated ? 'They are' : 'It is'} not shown again.`,
      ].join('\n'),
    };
  },
};

const list: Command<{ email?: string; name?: string; account?: AccountReference }> = {
  name: 'list',
  summary: 'list users and their memberships',
  description:
    'Lists users with their memberships, oldest first; with options, only those that match all of them.',
  options: [
    valueOption('--email <part>', 'only users whose address contains this text', optionValues.name),
    nameFilter(),
    accountOption('only members of this account: its id or identifier (act_…)'),
  ],
  examples: ['user list', 'user list --account 1', 'user list --email @example.com --json'],
  async run({ account: reference, ...filter }, { prisma }) {
    const account = reference === undefined ? null : await resolveAccount(prisma, reference);
    const users = await listUsers(prisma, {
      ...filter,
      ...(account === null ? {} : { accountId: account.id }),
    });
    const rows = users.map(({ id, email, name, memberships }) => [
      String(id),
      email,
      name,
      memberships.map(membershipText).join('; ') || '-',
    ]);
    return {
      json: users,
      text: users.length === 0 ? 'No users.' : table(['ID', 'E-MAIL', 'NAME', 'ACCOUNTS'], rows),
    };
  },
};

const newPassword: Command<UserChoice & { passwordStdin?: boolean }> = {
  name: 'reset-password',
  summary: 'set a new password of a user',
  description:
    'Sets a new password, shows it once if it was generated, and ends the console sessions of the user. The API key does not change.',
  options: [...userChoiceOptions(), passwordStdinFlag()],
  examples: [
    'user reset-password --email ada@example.com',
    'user reset-password --id 7 --password-stdin < password.txt',
  ],
  check: requireOneUser,
  async run(options, { prisma, stdin }) {
    const { password, isGenerated } = await choosePassword(options, stdin);
    const user = await chosenUser(prisma, options);
    await requireUnlinked(prisma, user);
    const reset = await resetPassword(prisma, user.id, password);
    if (reset === null) throw userIsGone(user);
    const { sessionsEnded } = reset;
    return {
      json: {
        id: user.id,
        email: user.email,
        ...(isGenerated ? { password } : {}),
        sessions_ended: sessionsEnded,
      },
      text: [
        `User ${user.id}, ${user.email}, has a new password; console sessions ended: ${sessionsEnded}.`,
        ...(isGenerated ? ['', `  password  ${password}`, '', 'It is not shown again.'] : []),
      ].join('\n'),
    };
  },
};

const revokeKey: Command<UserChoice> = {
  name: 'revoke-key',
  summary: 'revoke the API key of a user',
  description:
    'Revokes the API key of a user: every further request with it is rejected. The profile page shows the user a new one. Sessions continue.',
  options: userChoiceOptions(),
  examples: ['user revoke-key --email ada@example.com', 'user revoke-key --id 7'],
  needsKeys: true,
  check: requireOneUser,
  async run(options, { prisma, encryptionKeys }) {
    const user = await chosenUser(prisma, options);
    const isRevoked = await revokeApiKey(prisma, createSecretBox(encryptionKeys), user.id);
    if (!isRevoked) throw userIsGone(user);
    return {
      json: { id: user.id, email: user.email },
      text: `The API key of user ${user.id}, ${user.email}, was revoked. Its profile page shows a new one.`,
    };
  },
};

const remove: Command<UserChoice> = {
  name: 'remove',
  summary: 'remove a user from the installation',
  description:
    'Deletes a user with all memberships, sessions, the password and the API key. Webhooks and audit entries stay. This cannot be undone.',
  options: userChoiceOptions(),
  examples: ['user remove --email ada@example.com', 'user remove --id 7'],
  check: requireOneUser,
  async run(options, { prisma }) {
    const user = await chosenUser(prisma, options);
    const removed = await removeUser(prisma, user.id);
    if (removed === null) throw userIsGone(user);
    const { memberships, sessions } = removed;
    return {
      json: { id: user.id, email: user.email, memberships_removed: memberships, sessions_ended: sessions },
      text: `User ${user.id}, ${user.email}, was removed; memberships: ${memberships}, console sessions ended: ${sessions}.`,
    };
  },
};

/** Options of a command on one user. */
interface UserChoice {
  email?: string;
  id?: number;
}

function userChoiceOptions() {
  return [
    valueOption('--email <address>', 'e-mail address of the user', optionValues.email),
    valueOption('--id <id>', 'id of the user, instead of --email', optionValues.id),
  ];
}

function requireOneUser({ email, id }: UserChoice): void {
  if ((email === undefined) === (id === undefined)) throw new UsageError('Give either --email or --id.');
}

async function chosenUser(prisma: PrismaClient, { email, id }: UserChoice) {
  return id === undefined
    ? await requireUser(prisma, { email: email as string }, '--email')
    : await requireUser(prisma, { id }, '--id');
}

function userIsGone({ email }: { email: string }): NotFoundError {
  return new NotFoundError(`The user ${email} no longer exists.`);
}

function membershipText({ account_id, license, permission_sets }: UserMembershipView): string {
  return `${account_id} (${[license, ...permission_sets].join(', ')})`;
}

export const userGroup: CommandGroup = {
  name: 'user',
  summary: 'users with their passwords and API keys',
  commands: [create, list, newPassword, revokeKey, remove, link, unlink] as Command[],
};

const GENERATED_BYTES = 15;
/** Each code point has at most four bytes of UTF-8. */
const READ_BYTES_MAX = PASSWORD_LIMITS.charactersMax * 4 + '\r\n'.length;

/** Standard input, or a substitute in tests. */
export type Input = AsyncIterable<Buffer | string> & { isTTY?: boolean };

export interface PasswordChoice {
  password: string;
  /** A generated password must be shown to the operator. */
  isGenerated: boolean;
}

/** Returns a new password: read from `stdin` if the operator supplies one, otherwise 120 random bits. */
async function choosePassword(
  { passwordStdin = false }: { passwordStdin?: boolean },
  stdin: Input,
): Promise<PasswordChoice> {
  if (passwordStdin) return { password: await readPassword(stdin), isGenerated: false };
  return { password: randomBytes(GENERATED_BYTES).toString('base64url'), isGenerated: true };
}

/** Reads until the end of input; removes one line break at the end. */
async function readPassword(stdin: Input): Promise<string> {
  if (stdin.isTTY) {
    throw new UsageError(
      '--password-stdin reads a pipe or a file, and standard input is a terminal that would show it.',
    );
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    // Leaving the loop closes the stream, which may be endless.
    if (length > READ_BYTES_MAX) break;
  }
  const password = decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
  const problem = passwordProblem(password);
  if (problem !== null) throw new UsageError(`--password-stdin: the password ${problem}.`);
  return password;
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError('--password-stdin requires text in UTF-8.');
  }
}
