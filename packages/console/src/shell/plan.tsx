import { Text } from '@mantine/core';
import type { Account } from '../api/types.ts';
import { PLAN_NAMES } from '../wording/webhooks.ts';
import classes from './shell.module.css';

/** Plan of the account, shown next to its name. */
export function Plan({ account }: { account: Account }) {
  return (
    <Text span size="xs" className={classes.plan ?? ''}>
      {PLAN_NAMES[account.plan]}
    </Text>
  );
}
