import { type Deployment, type Plan, webhooksUnavailableReason } from '@runhook/contract';
import { createAccount } from '@runhook/database';
import { type AccountReference, listAccounts, updateAccount } from '../data/administration/accounts.ts';
import type { AccountView } from '../domain/account-view.ts';
import { type Command, type CommandGroup, requiredOption, valueOption } from './command.ts';
import { NotFoundError, UsageError } from './errors.ts';
import { accountNamed } from './find-named.ts';
import { accountOption, deploymentOption, nameFilter, planOption } from './named-options.ts';
import { optionValues } from './option-values.ts';
import { table } from './table.ts';

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
  async run({ name, plan, deployment }, { prisma, pool }) {
    const { id } = await createAccount(prisma, { name, plan, deployment });
    const account = await accountNamed(pool, { id });
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
  async run(filter, { pool }) {
    const accounts = await listAccounts(pool, filter);
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
  async run({ account: reference, ...changes }, { pool }) {
    const { id } = await accountNamed(pool, reference);
    const account = await updateAccount(pool, id, changes);
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
