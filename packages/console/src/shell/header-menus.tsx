import {
  Combobox,
  type MantineColorScheme,
  Menu,
  Text,
  useCombobox,
  useMantineColorScheme,
} from '@mantine/core';
import { IconCheck, IconDeviceDesktop, IconLogout, IconMoon, IconSun } from '@tabler/icons-react';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import type { PopoverProps } from '../components/lazy-popover.tsx';
import { useOpenOnMount } from '../components/overlays.tsx';
import { SIGN_OUT_PATH, webhooksPath } from '../paths.ts';
import { useCurrentAccount, useSession } from '../session/session.ts';
import { Plan } from './plan.tsx';
import classes from './shell.module.css';

/** Number of accounts from which the list has a search. */
const SEARCH_FROM_ACCOUNTS = 8;

/** Dropdown of the user's accounts; a selection opens its webhooks. */
export function AccountList({ trigger }: PopoverProps) {
  const { accounts } = useSession();
  const current = useCurrentAccount();
  const navigate = useNavigate();
  const [search, setSearch] = useState('');
  const isSearchable = accounts.length >= SEARCH_FROM_ACCOUNTS;
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
  const target = useOpenOnMount(() => combobox.openDropdown());
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
        {trigger({ ref: target, onClick: () => combobox.toggleDropdown() })}
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
          {shown.length === 0 && <Combobox.Empty>No account name contains “{search.trim()}”</Combobox.Empty>}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}

const SCHEMES: { value: MantineColorScheme; label: string; icon: typeof IconSun }[] = [
  { value: 'light', label: 'Light', icon: IconSun },
  { value: 'dark', label: 'Dark', icon: IconMoon },
  { value: 'auto', label: 'System', icon: IconDeviceDesktop },
];

export function OwnMenu({ trigger }: PopoverProps) {
  const [opened, setOpened] = useState(false);
  const target = useOpenOnMount(() => setOpened(true));
  const { name, email } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const navigate = useNavigate();
  return (
    <Menu position="bottom-end" width={250} opened={opened} onChange={setOpened}>
      <Menu.Target>{trigger({ ref: target })}</Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)" className={classes.breakAnywhere ?? ''}>
            {name}
          </Text>
          <Text size="xs" className={classes.breakAnywhere ?? ''}>
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
          onClick={() => void navigate(SIGN_OUT_PATH, { state: { isRequested: true } })}
        >
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
