import { createServiceToken, type PermissionSet } from '@runhook/database';
import { printable, table } from '@runhook/runtime/terminal-text';
import {
  type AccountReference,
  findServiceToken,
  listServiceTokens,
  revokeServiceToken,
  type ServiceTokenView,
} from '../identity/administration.ts';
import {
  type Command,
  type CommandGroup,
  NotFoundError,
  requiredOption,
  UsageError,
  valueOption,
} from './command.ts';
import { accountOption, nameFilter, optionValues, permissionSetOption, resolveAccount } from './options.ts';

interface CreateOptions {
  account: AccountReference;
  name: string;
  permissionSet: PermissionSet[];
  /** Milliseconds. */
  expiresIn?: number;
  expiresAt?: Date;
}

const create: Command<CreateOptions> = {
  name: 'create',
  summary: 'create a service token of an account',
  description: 'Creates a service token of one account. The token is shown only once.',
  options: [
    accountOption().makeOptionMandatory(),
    requiredOption('--name <name>', 'purpose of the token, up to 255 characters', optionValues.name),
    permissionSetOption('may be repeated').makeOptionMandatory(),
    valueOption(
      '--expires-in <duration>',
      'minutes, hours, days or weeks: 30m, 12h, 90d, 4w',
      optionValues.duration,
    ),
    valueOption(
      '--expires-at <time>',
      'ISO 8601: 2030-01-31 (its beginning, UTC) or 2030-01-31T12:00Z',
      optionValues.futureTime,
    ),
  ],
  examples: [
    'token create --account 1 --name CI --permission-set job_runner',
    'token create --account act_… --name Terraform --permission-set account_admin --expires-in 90d',
  ],
  check({ expiresIn, expiresAt }) {
    if (expiresIn === undefined || expiresAt === undefined) return;
    throw new UsageError('Give --expires-in or --expires-at, not both.');
  },
  async run({ account: reference, name, permissionSet: permissionSets, expiresIn, expiresAt }, { prisma }) {
    const expiry = expiresIn === undefined ? expiresAt : new Date(Date.now() + expiresIn);
    const { id: accountId } = await resolveAccount(prisma, reference);
    const newToken = {
      accountId,
      name,
      permissionSets,
      ...(expiry === undefined ? {} : { expiresAt: expiry }),
    };
    const { id, token } = await createServiceToken(prisma, newToken);
    return {
      json: { ...(await findServiceToken(prisma, id)), token },
      text: [
        `Created token ${id} of account ${accountId}: ${permissionSets.join(', ')}; ${expiry === undefined ? 'never expires' : `expires ${expiry.toISOString()}`}.`,
        '',
        `  token  ${token}`,
        '',
        'It is not shown again.',
      ].join('\n'),
    };
  },
};

const list: Command<{ account?: AccountReference; name?: string; permissionSet?: PermissionSet[] }> = {
  name: 'list',
  summary: 'list service tokens',
  description:
    'Lists service tokens without their secret, oldest first; with options, only those that match all of them.',
  options: [
    accountOption('only tokens of this account: its id or identifier (act_…)'),
    nameFilter(),
    permissionSetOption('only tokens with this permission set; may be repeated for any of several'),
  ],
  examples: ['token list --account 1', 'token list --permission-set account_admin --json'],
  async run({ account: reference, name, permissionSet: permissionSets }, { prisma }) {
    const account = reference === undefined ? null : await resolveAccount(prisma, reference);
    const tokens = await listServiceTokens(prisma, {
      ...(account === null ? {} : { accountId: account.id }),
      ...(name === undefined ? {} : { name }),
      ...(permissionSets === undefined ? {} : { permissionSets }),
    });
    return { json: tokens, text: tokens.length === 0 ? 'No tokens.' : tokensTable(tokens) };
  },
};

const revoke: Command<{ id: number }> = {
  name: 'revoke',
  summary: 'revoke a service token',
  description: 'Revokes a service token: every further request with it is rejected. This cannot be undone.',
  options: [requiredOption('--id <id>', 'id of the token, as in token list', optionValues.id)],
  examples: ['token revoke --id 3'],
  async run({ id }, { prisma }) {
    const revocation = await revokeServiceToken(prisma, id);
    if (revocation === null) throw new NotFoundError(`--id: there is no token ${id}.`);
    const { token, wasAlreadyRevoked } = revocation;
    const subject = `Token ${id} of account ${token.account_id} (${printable(token.name)})`;
    return {
      json: token,
      text: wasAlreadyRevoked
        ? `${subject} was already revoked at ${token.revoked_at}.`
        : `${subject} was revoked.`,
    };
  },
};

function tokensTable(tokens: readonly ServiceTokenView[]): string {
  return table(
    ['ID', 'ACCOUNT', 'NAME', 'PERMISSION SETS', 'CREATED', 'EXPIRES', 'LAST USED', 'REVOKED'],
    tokens.map((token) => [
      String(token.id),
      String(token.account_id),
      token.name,
      token.permission_sets.join(', '),
      token.created_at,
      token.expires_at ?? 'never',
      token.last_used_at ?? 'never',
      token.revoked_at ?? '-',
    ]),
  );
}

export const tokenGroup: CommandGroup = {
  name: 'token',
  summary: 'service tokens',
  commands: [create, list, revoke] as Command[],
};
