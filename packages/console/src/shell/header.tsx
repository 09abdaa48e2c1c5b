import { Button, TextInput, VisuallyHidden } from '@mantine/core';
import { IconSearch, IconSelector, IconUserCircle } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useNavigate } from 'react-router';
import { LazyPopover, lazyOverlay, type TriggerProps } from '../components/lazy-popover.tsx';
import { isFilter, NO_EVENT_FILTERS, windowUntilNow, writeEventsAddress } from '../events/events-address.ts';
import { eventsPath, runPath, runsPath } from '../paths.ts';
import { useCurrentAccount, useSession } from '../session/session.ts';
import { Plan } from './plan.tsx';
import classes from './shell.module.css';

const menus = () => import('./header-menus.tsx');
const AccountList = lazyOverlay(async () => ({ default: (await menus()).AccountList }));
const OwnMenu = lazyOverlay(async () => ({ default: (await menus()).OwnMenu }));

/** Shows the current account, and switches to another. */
export function AccountSwitcher() {
  const { accounts } = useSession();
  const current = useCurrentAccount();
  if (accounts.length === 0) return null;
  const trigger = (opens: TriggerProps) => (
    <Button
      {...opens}
      variant="default"
      size="sm"
      className={classes.account ?? ''}
      rightSection={<IconSelector size={16} aria-hidden />}
    >
      <VisuallyHidden>Account: </VisuallyHidden>
      <span className={classes.accountName}>{current?.name ?? 'Choose an account'}</span>
      {current !== null && <Plan account={current} />}
    </Button>
  );
  return (
    <LazyPopover popup="listbox" trigger={trigger}>
      <AccountList trigger={trigger} />
    </LazyPopover>
  );
}

/** Opens a run by its id, or the deliveries of an event by its id. Any other text is searched among the runs. */
export function GoTo() {
  const account = useCurrentAccount();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  if (account === null) return null;

  function go(event: FormEvent) {
    event.preventDefault();
    const query = text.trim();
    if (account === null || query === '') return;
    setText('');
    if (/^[1-9]\d{0,14}$/.test(query)) void navigate(runPath(account.id, query));
    else if (isFilter('eventId', query)) void navigate(eventPath(account.id, query));
    else void navigate(`${runsPath(account.id)}?${new URLSearchParams({ search: query })}`);
  }

  return (
    <form onSubmit={go} className={classes.goTo}>
      <TextInput
        size="sm"
        aria-label="Go to a run or an event"
        placeholder="Run id, event id, job"
        leftSection={<IconSearch size={16} aria-hidden />}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}

/** Default retention of logs, in days. */
const LOG_DAYS = 30;

function eventPath(accountId: number, eventId: string): string {
  const { from } = windowUntilNow(LOG_DAYS * 86_400_000, Date.now());
  return `${eventsPath(accountId)}?${writeEventsAddress({ ...NO_EVENT_FILTERS, from, to: '', eventId })}`;
}

/** Menu of the user: name, appearance, sign-out. */
export function UserMenu() {
  const { name } = useSession();
  const trigger = (opens: TriggerProps) => (
    <Button
      {...opens}
      variant="subtle"
      color="gray"
      size="sm"
      px={6}
      className={classes.person ?? ''}
      aria-label={`You: ${name}`}
      leftSection={<IconUserCircle size={22} aria-hidden />}
    >
      <span className={classes.personName}>{name}</span>
    </Button>
  );
  return (
    <LazyPopover popup="menu" trigger={trigger}>
      <OwnMenu trigger={trigger} />
    </LazyPopover>
  );
}
