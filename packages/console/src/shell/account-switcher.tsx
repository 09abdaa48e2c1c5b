import { Button, Combobox, Text, useCombobox, VisuallyHidden } from '@mantine/core';
import { IconCheck, IconSelector } from '@tabler/icons-react';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import type { Account } from '../api/types.ts';
import { webhooksPath } from '../paths.ts';
import { useCurrentAccount, useSession } from '../session/session.ts';
import { PLAN_NAMES } from '../words/webhooks.ts';
import classes from './account-switcher.module.css';

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
          className={classes.target ?? ''}
          rightSection={<IconSelector size={16} aria-hidden />}
          onClick={() => combobox.toggleDropdown()}
        >
          <VisuallyHidden>Account: </VisuallyHidden>
          <span className={classes.name}>{current?.name ?? 'Choose an account'}</span>
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
              <span className={classes.name}>{account.name}</span>
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
