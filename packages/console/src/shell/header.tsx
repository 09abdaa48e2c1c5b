import {
  Button,
  Combobox,
  type MantineColorScheme,
  Menu,
  Text,
  TextInput,
  useCombobox,
  useMantineColorScheme,
  VisuallyHidden,
} from '@mantine/core';
import {
  IconCheck,
  IconDeviceDesktop,
  IconLogout,
  IconMoon,
  IconSearch,
  IconSelector,
  IconSun,
  IconUserCircle,
} from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useNavigate } from 'react-router';
import type { Account } from '../api/types.ts';
import { isFilter, NO_EVENT_FILTERS, sinceNow, writeEventsAddress } from '../events/events-address.ts';
import { eventsPath, runPath, runsPath, SIGN_OUT_PATH, webhooksPath } from '../paths.ts';
import { useCurrentAccount, useSession } from '../session/session.ts';
import { PLAN_NAMES } from '../words/webhooks.ts';
import classes from './shell.module.css';

/** From this many on there is a search. */
const MANY = 8;

/** Which account is looked at, and a way to another one. */
export function AccountSwitcher() {
  const { accounts } = useSession();
  const current = useCurrentAccount();
  const navigate = useNavigate();
  const [search, setSearch] = useState('');
  const isSearchable = accounts.length >= MANY;
  const combobox = useCombobox({
    onDropdownClose: () => {
      combobox.resetSelectedOption();
      combobox.focusTarget();
      setSearch('');
    },
    onDropdownOpen: () => {
      if (isSearchable) combobox.focusSearchInput();
      combobox.selectActiveOption();
    },
  });
  if (accounts.length === 0) return null;
  const shown = accounts.filter(({ name }) => name.toLowerCase().includes(search.trim().toLowerCase()));

  return (
    <Combobox
      store={combobox}
      width={280}
      position="bottom-start"
      onOptionSubmit={(id) => {
        combobox.closeDropdown();
        void navigate(webhooksPath(Number(id)));
      }}
    >
      <Combobox.Target targetType="button">
        <Button
          variant="default"
          size="sm"
          className={classes.account ?? ''}
          rightSection={<IconSelector size={16} aria-hidden />}
          onClick={() => combobox.toggleDropdown()}
        >
          <VisuallyHidden>Account: </VisuallyHidden>
          <span className={classes.accountName}>{current?.name ?? 'Choose an account'}</span>
          {current !== null && <Plan account={current} />}
        </Button>
      </Combobox.Target>
      <Combobox.Dropdown>
        {isSearchable && (
          <Combobox.Search
            value={search}
            onChange={(event) => {
              setSearch(event.currentTarget.value);
              combobox.resetSelectedOption();
            }}
            placeholder="Find an account"
            aria-label="Find an account"
          />
        )}
        <Combobox.Options mah={320} style={{ overflowY: 'auto' }} aria-label="Accounts">
          {shown.map((account) => (
            <Combobox.Option
              key={account.id}
              value={String(account.id)}
              active={account.id === current?.id}
              className={classes.option ?? ''}
            >
              <IconCheck
                size={16}
                aria-hidden
                style={{ flexShrink: 0, visibility: account.id === current?.id ? 'visible' : 'hidden' }}
              />
              <span className={classes.accountName}>{account.name}</span>
              <Plan account={account} />
            </Combobox.Option>
          ))}
          {shown.length === 0 && (
            <Combobox.Empty>No account has “{search.trim()}” in its name</Combobox.Empty>
          )}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}

function Plan({ account }: { account: Account }) {
  return (
    <Text span size="xs" className={classes.plan ?? ''}>
      {PLAN_NAMES[account.plan]}
    </Text>
  );
}

/** A run's id leads to the run, an event's to its deliveries; anything else is looked for among the runs. */
export function GoTo() {
  const account = useCurrentAccount();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  if (account === null) return null;

  function go(event: FormEvent) {
    event.preventDefault();
    const wanted = text.trim();
    if (account === null || wanted === '') return;
    setText('');
    if (/^[1-9]\d{0,14}$/.test(wanted)) void navigate(runPath(account.id, wanted));
    else if (isFilter('eventId', wanted)) void navigate(eventPath(account.id, wanted));
    else void navigate(`${runsPath(account.id)}?${new URLSearchParams({ search: wanted })}`);
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

/** As far back as logs are kept, unless the operator has set another time. */
const LOG_DAYS = 30;

function eventPath(accountId: number, eventId: string): string {
  const { from } = sinceNow(LOG_DAYS * 86_400_000, Date.now());
  return `${eventsPath(accountId)}?${writeEventsAddress({ ...NO_EVENT_FILTERS, from, to: '', eventId })}`;
}

const SCHEMES: { value: MantineColorScheme; label: string; icon: typeof IconSun }[] = [
  { value: 'light', label: 'Light', icon: IconSun },
  { value: 'dark', label: 'Dark', icon: IconMoon },
  { value: 'auto', label: 'As the system', icon: IconDeviceDesktop },
];

/** Who is signed in, how the console looks, and the way out. */
export function UserMenu() {
  const { name, email } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const navigate = useNavigate();
  return (
    <Menu position="bottom-end" width={250}>
      <Menu.Target>
        <Button
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
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)" className={classes.anywhere ?? ''}>
            {name}
          </Text>
          <Text size="xs" className={classes.anywhere ?? ''}>
            {email}
          </Text>
        </Menu.Label>
        <Menu.Divider />
        <Menu.Label>Appearance</Menu.Label>
        <Menu.RadioGroup
          value={colorScheme}
          onChange={(value) => setColorScheme(value as MantineColorScheme)}
        >
          {SCHEMES.map(({ value, label, icon: Icon }) => (
            <Menu.RadioItem key={value} value={value} rightSection={<Icon size={16} aria-hidden />}>
              {label}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Divider />
        <Menu.Item
          leftSection={<IconLogout size={16} aria-hidden />}
          onClick={() => void navigate(SIGN_OUT_PATH, { state: { isAsked: true } })}
        >
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
