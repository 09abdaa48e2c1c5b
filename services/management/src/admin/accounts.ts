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
  summary: 'make an account',
  description:
    'Makes an account. Webhooks exist on the plans team and enterprise only, and not on the deployment single_tenant_private.',
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
  summary: 'show the accounts',
  description: 'Shows the accounts, oldest first; with options, only those that fit them all.',
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
    'Changes what is given, and leaves the rest. An account that loses the plan or the deployment for webhooks stops delivering; deliveries that wait are cancelled.',
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
  return reason === null ? '' : `\n\nIt has no webhooks: its ${reason} is ${account[reason]}.`;
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
  summary: 'make a user a member of an account, or change what a member may do',
  description:
    'Makes a user a member of an account. For one who is, it changes what is given and leaves the rest, so it may be repeated. What a licence and a permission set allow depends on the plan: on team a user writes webhooks with the licence developer, on enterprise with the permission set account_admin, admin or developer.',
  options: [
    accountOption().makeOptionMandatory(),
    userOption().makeOptionMandatory(),
    licenseOption(`${LICENSE_DEFAULT} for a new member`),
    permissionSetOption('may be repeated; together they replace those that a member has'),
    flag('--no-permission-set', 'take all permission sets away'),
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
  description: 'Ends a membership. The user stays, and so do the service tokens of the account.',
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
  summary: 'who belongs to an account, with which licence and permission sets',
  commands: [add, remove] as Command[],
};
