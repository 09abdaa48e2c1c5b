import { type Deployment, type Plan, webhooksUnavailableReason } from '@runhook/contract';
import { createAccount, type License, type PermissionSet } from '@runhook/database';
import { printable, table } from '@runhook/runtime/terminal-text';
import type { AccountView } from '../identity/accounts.ts';
import {
  type AccountReference,
  LICENSE_DEFAULT,
  listAccounts,
  putMembership,
  removeMembership,
  type UserReference,
  updateAccount,
} from '../identity/administration.ts';
import {
  type Command,
  type CommandGroup,
  flag,
  NotFoundError,
  requiredOption,
  UsageError,
  valueOption,
} from './command.ts';
import {
  accountOption,
  deploymentOption,
  licenseOption,
  nameFilter,
  optionValues,
  permissionSetOption,
  planOption,
  requireUser,
  resolveAccount,
  userOption,
} from './options.ts';

const create: Command<{ name: string; plan: Plan; deployment: Deployment }> = {
  name: 'create',
  summary: 'create an account',
  description:
    'Creates an account. Webhooks require the plan team or enterprise, and a deployment other than single_tenant_private.',
  options: [
    requiredOption('--name <name>', 'up to 255 characters', optionValues.name),
    planOption().makeOptionMandatory(),
    deploymentOption().default('multi_tenant'),
  ],
  examples: ['account create --name Acme --plan enterprise'],
  async run({ name, plan, deployment }, { prisma }) {
    const { id } = await createAccount(prisma, { name, plan, deployment });
    const account = await resolveAccount(prisma, { id });
    return {
      json: account,
      text: `Created account ${account.id}.\n\n${accountsTable([account])}${remark(account)}`,
    };
  },
};

const list: Command<{ name?: string; plan?: Plan; deployment?: Deployment }> = {
  name: 'list',
  summary: 'list accounts',
  description: 'Lists accounts, oldest first; with options, only those that match all of them.',
  options: [nameFilter(), planOption(), deploymentOption()],
  examples: ['account list', 'account list --plan free --json'],
  async run(filter, { prisma }) {
    const accounts = await listAccounts(prisma, filter);
    return { json: accounts, text: accounts.length === 0 ? 'No accounts.' : accountsTable(accounts) };
  },
};

const update: Command<{ account: AccountReference; name?: string; plan?: Plan; deployment?: Deployment }> = {
  name: 'update',
  summary: 'change the name, plan or deployment of an account',
  description:
    'Changes the given fields only. An account that loses its webhooks with the plan or the deployment gets no new deliveries; pending ones are cancelled.',
  options: [
    accountOption().makeOptionMandatory(),
    valueOption('--name <name>', 'the new name, up to 255 characters', optionValues.name),
    planOption(),
    deploymentOption(),
  ],
  examples: ['account update --account 1 --plan team', 'account update --account act_… --name "Acme Ltd"'],
  check({ name, plan, deployment }) {
    if (name !== undefined || plan !== undefined || deployment !== undefined) return;
    throw new UsageError('Nothing to change: give --name, --plan or --deployment.');
  },
  async run({ account: reference, ...changes }, { prisma }) {
    const { id } = await resolveAccount(prisma, reference);
    const account = await updateAccount(prisma, id, changes);
    if (account === null) throw new NotFoundError(`--account: there is no account ${id}.`);
    return { json: account, text: `Updated account ${id}.\n\n${accountsTable([account])}${remark(account)}` };
  },
};

function accountsTable(accounts: readonly AccountView[]): string {
  return table(
    ['ID', 'IDENTIFIER', 'NAME', 'PLAN', 'DEPLOYMENT'],
    accounts.map(({ id, identifier, name, plan, deployment }) => [
      String(id),
      identifier,
      name,
      plan,
      deployment,
    ]),
  );
}

function remark(account: AccountView): string {
  const reason = webhooksUnavailableReason(account);
  return reason === null ? '' : `\n\nThe account has no webhooks: its ${reason} is ${account[reason]}.`;
}

export const accountGroup: CommandGroup = {
  name: 'account',
  summary: 'accounts with their plan and deployment',
  commands: [create, list, update] as Command[],
};

interface MemberOptions {
  account: AccountReference;
  user: UserReference;
}

const add: Command<MemberOptions & { license?: License; permissionSet?: PermissionSet[] | false }> = {
  name: 'add',
  summary: 'add a user to an account, or change a membership',
  description:
    'Adds a user to an account. For a member, it changes the given fields only, so the command may be repeated. The effect of a licence or permission set depends on the plan: writing webhooks requires on team the licence developer, on enterprise the permission set account_admin, admin or developer.',
  options: [
    accountOption().makeOptionMandatory(),
    userOption().makeOptionMandatory(),
    licenseOption(`${LICENSE_DEFAULT} for a new member`),
    permissionSetOption('may be repeated; they replace the existing ones'),
    flag('--no-permission-set', 'remove all permission sets'),
  ],
  examples: [
    'membership add --account 1 --user ada@example.com --license developer --permission-set admin',
    'membership add --account 1 --user 7 --permission-set developer --permission-set job_runner',
  ],
  async run({ account: accountReference, user: userReference, license, permissionSet }, { prisma }) {
    const account = await resolveAccount(prisma, accountReference);
    const user = await requireUser(prisma, userReference);
    const permissionSets = permissionSet === false ? [] : permissionSet;
    const { is_new, ...membership } = await putMembership(
      prisma,
      { accountId: account.id, userId: user.id },
      {
        ...(license === undefined ? {} : { license }),
        ...(permissionSets === undefined ? {} : { permissionSets }),
      },
    );
    const permissions = `licence ${membership.license}, permission sets: ${membership.permission_sets.join(', ') || 'none'}`;
    return {
      json: { ...membership, is_new },
      text: `${user.email} is ${is_new ? 'now ' : ''}a member of account ${account.id} (${printable(account.name)}): ${permissions}.`,
    };
  },
};

const remove: Command<MemberOptions> = {
  name: 'remove',
  summary: 'end a membership',
  description: 'Ends a membership. The user and the service tokens of the account remain.',
  options: [accountOption().makeOptionMandatory(), userOption().makeOptionMandatory()],
  examples: ['membership remove --account 1 --user ada@example.com'],
  async run({ account: accountReference, user: userReference }, { prisma }) {
    const account = await resolveAccount(prisma, accountReference);
    const user = await requireUser(prisma, userReference);
    if (!(await removeMembership(prisma, { accountId: account.id, userId: user.id }))) {
      throw new NotFoundError(`--user: ${user.email} is not a member of account ${account.id}.`);
    }
    return {
      json: { account_id: account.id, user_id: user.id, removed: true },
      text: `${user.email} is no longer a member of account ${account.id} (${printable(account.name)}).`,
    };
  },
};

export const membershipGroup: CommandGroup = {
  name: 'membership',
  summary: 'members of accounts, with their licence and permission sets',
  commands: [add, remove] as Command[],
};
