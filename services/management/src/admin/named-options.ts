import { DEPLOYMENTS, PLANS } from '@runhook/contract';
import { LICENSES, PERMISSION_SETS } from '@runhook/database';
import { flag, valueOption } from './command.ts';
import { optionValues } from './option-values.ts';

/** Options that more than one command takes; new ones at each call, since a command may make its own mandatory. */

export function planOption() {
  return valueOption('--plan <plan>', `one of ${PLANS.join(', ')}`, (option) =>
    optionValues.oneOf(option, PLANS),
  );
}

export function deploymentOption() {
  return valueOption('--deployment <deployment>', `one of ${DEPLOYMENTS.join(', ')}`, (option) =>
    optionValues.oneOf(option, DEPLOYMENTS),
  );
}

export function licenseOption(remark: string) {
  return valueOption('--license <license>', `one of ${LICENSES.join(', ')}; ${remark}`, (option) =>
    optionValues.oneOf(option, LICENSES),
  );
}

export function permissionSetOption(remark: string) {
  return valueOption('--permission-set <set>', `one of ${PERMISSION_SETS.join(', ')}; ${remark}`, (option) =>
    optionValues.someOf(option, PERMISSION_SETS),
  );
}

export function accountOption(description = 'its id or identifier (act_…)') {
  return valueOption('--account <account>', description, optionValues.account);
}

export function userOption() {
  return valueOption('--user <user>', 'id or e-mail address', optionValues.user);
}

/** For a list: whatever text it is, it can be looked for. */
export function nameFilter() {
  return valueOption('--name <part>', 'only those whose name has this in it', optionValues.name);
}

export function passwordStdinFlag() {
  return flag('--password-stdin', 'read the password from standard input instead of making one');
}
