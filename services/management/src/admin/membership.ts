import type { License, PermissionSet } from '@runhook/database';
import type { AccountReference } from '../data/administration/accounts.ts';
import { LICENSE_DEFAULT, putMembership, removeMembership } from '../data/administration/memberships.ts';
import type { UserReference } from '../data/administration/users.ts';
import { type Command, type CommandGroup, flag } from './command.ts';
import { NotFoundError } from './errors.ts';
import { accountNamed, userNamed } from './find-named.ts';
import { accountOption, licenseOption, permissionSetOption, userOption } from './named-options.ts';
import { printable } from './table.ts';

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
  async run({ account: accountReference, user: userReference, license, permissionSet }, { pool }) {
    const account = await accountNamed(pool, accountReference);
    const user = await userNamed(pool, userReference);
    const permissionSets = permissionSet === false ? [] : permissionSet;
    const { is_new, ...membership } = await putMembership(
      pool,
      { accountId: account.id, userId: user.id },
      {
        ...(license === undefined ? {} : { license }),
        ...(permissionSets === undefined ? {} : { permissionSets }),
      },
    );
    const holds = `licence ${membership.license}, permission sets: ${membership.permission_sets.join(', ') || 'none'}`;
    return {
      json: { ...membership, is_new },
      text: `${user.email} is ${is_new ? 'now ' : ''}a member of account ${account.id} (${printable(account.name)}): ${holds}.`,
    };
  },
};

const remove: Command<MemberOptions> = {
  name: 'remove',
  summary: 'end a membership',
  description: 'Ends a membership. The user stays, and so do the service tokens of the account.',
  options: [accountOption().makeOptionMandatory(), userOption().makeOptionMandatory()],
  examples: ['membership remove --account 1 --user ada@example.com'],
  async run({ account: accountReference, user: userReference }, { pool }) {
    const account = await accountNamed(pool, accountReference);
    const user = await userNamed(pool, userReference);
    if (!(await removeMembership(pool, { accountId: account.id, userId: user.id }))) {
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
