import { Button, Group, NativeSelect, Select, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  jobSearchQuery,
  jobsByIdQuery,
  subscriptionQuery,
  subscriptionsQuery,
} from '../api/subscriptions.ts';
import { TYPING_PAUSE_MS, useAddressText, useDebouncedInput } from '../components/typed-text.ts';
import { DELIVERY_STATUS_LABELS } from '../wording/deliveries.ts';
import { ERROR_CODES } from '../wording/http-status.ts';
import { EVENT_TEXTS, EVENT_TYPES_IN_ORDER } from '../wording/webhooks.ts';
import classes from './events.module.css';
import {
  type EventsAddress,
  hasEventFilters,
  isFilter,
  NO_EVENT_FILTERS,
  STATUSES,
} from './events-address.ts';
import { UtcRange } from './utc-range.tsx';

interface EventFiltersProps {
  accountId: number;
  address: EventsAddress;
  onChange: (part: Partial<EventsAddress>) => void;
}

const WEBHOOKS_SHOWN = 50;
const ANY = { value: '', label: 'Any' };

export function EventFilters({ accountId, address, onChange }: EventFiltersProps) {
  // A new key remounts the fields, which cancels their delayed changes.
  const [clearings, setClearings] = useState(0);
  return (
    <Group key={clearings} gap="sm" align="flex-end" role="search" aria-label="Filter deliveries">
      <UtcRange what="Created" size="xs" from={address.from} to={address.to} onChange={onChange} />
      <Choice
        label="Status"
        value={address.status}
        data={STATUSES.map((status) => ({ value: status, label: DELIVERY_STATUS_LABELS[status] }))}
        onChange={(status) => onChange({ status: status as EventsAddress['status'] })}
      />
      <Choice
        label="Event"
        value={address.event}
        data={EVENT_TYPES_IN_ORDER.map((type) => ({ value: type, label: EVENT_TEXTS[type].label }))}
        onChange={(event) => onChange({ event: event as EventsAddress['event'] })}
      />
      <WebhookFilter
        accountId={accountId}
        value={address.webhook}
        onChange={(webhook) => onChange({ webhook })}
      />
      <JobFilter accountId={accountId} value={address.job} onChange={(job) => onChange({ job })} />
      <TypedFilter name="run" label="Run id" address={address} onChange={onChange} />
      <TypedFilter name="eventId" label="Event id" address={address} onChange={onChange} />
      <TypedFilter name="code" label="HTTP status" address={address} onChange={onChange} />
      <Choice
        label="Error"
        value={address.error}
        data={ERROR_CODES.map((code) => ({ value: code, label: code.replaceAll('_', ' ') }))}
        onChange={(error) => onChange({ error })}
      />
      <TypedFilter name="slower" label="Took at least (ms)" address={address} onChange={onChange} />
      <TypedFilter name="faster" label="Took at most (ms)" address={address} onChange={onChange} />
      {hasEventFilters(address) && (
        <Button
          size="xs"
          variant="subtle"
          onClick={() => {
            setClearings(clearings + 1);
            onChange(NO_EVENT_FILTERS);
          }}
        >
          Clear filters
        </Button>
      )}
    </Group>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  data: { value: string; label: string }[];
  onChange: (value: string) => void;
}

function Choice({ label, value, data, onChange }: ChoiceProps) {
  return (
    <NativeSelect
      size="xs"
      label={label}
      value={value}
      data={[ANY, ...data]}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

interface SearchedProps {
  accountId: number;
  value: string;
  onChange: (value: string) => void;
}

function WebhookFilter({ accountId, value, onChange }: SearchedProps) {
  const [search, setSearch] = useState('');
  const [debounced] = useDebouncedValue(search, TYPING_PAUSE_MS);
  const key = { accountId, webhookId: value };
  const chosen = useQuery({ ...subscriptionQuery(key), enabled: value !== '' });
  const name = chosen.data?.name ?? value;
  const query = debounced === name ? '' : debounced;
  const found = useQuery(subscriptionsQuery(accountId, { search: query, limit: WEBHOOKS_SHOWN }));
  const options = (found.data?.data ?? []).map(({ id, name: label }) => ({ value: id, label }));
  return (
    <SearchedSelect
      label="Webhook"
      value={value}
      chosen={{ value, label: name }}
      options={options}
      onSearch={setSearch}
      onChange={onChange}
    />
  );
}

function JobFilter({ accountId, value, onChange }: SearchedProps) {
  const [search, setSearch] = useState('');
  const [debounced] = useDebouncedValue(search, TYPING_PAUSE_MS);
  const chosen = useQuery(jobsByIdQuery(accountId, value === '' ? [] : [value]));
  const name = chosen.data?.[0]?.name ?? `Job ${value}`;
  const found = useQuery(jobSearchQuery(accountId, debounced === name ? '' : debounced));
  const options = (found.data?.data ?? []).map((job) => ({ value: String(job.id), label: job.name }));
  return (
    <SearchedSelect
      label="Job"
      value={value}
      chosen={{ value, label: name }}
      options={options}
      onSearch={setSearch}
      onChange={onChange}
    />
  );
}

interface SearchedSelectProps {
  label: string;
  value: string;
  chosen: { value: string; label: string };
  options: { value: string; label: string }[];
  onSearch: (search: string) => void;
  onChange: (value: string) => void;
}

/** A select whose options come from a search on the server, because an account may have thousands. */
function SearchedSelect({ label, value, chosen, options, onSearch, onChange }: SearchedSelectProps) {
  const isListed = value === '' || options.some((option) => option.value === value);
  return (
    <Select
      size="xs"
      className={classes.filter ?? ''}
      label={label}
      placeholder="Any"
      searchable
      clearable
      clearButtonProps={{ 'aria-label': `Any ${label.toLowerCase()}` }}
      nothingFoundMessage="Nothing found"
      filter={({ options: all }) => all}
      data={isListed ? options : [chosen, ...options]}
      value={value === '' ? null : value}
      onSearchChange={onSearch}
      onChange={(next) => onChange(next ?? '')}
    />
  );
}

interface TypedFilterProps {
  name: 'run' | 'eventId' | 'code' | 'slower' | 'faster';
  label: string;
  address: EventsAddress;
  onChange: (part: Partial<EventsAddress>) => void;
}

/** Reports its value once typing pauses. An invalid value is marked and not reported. */
function TypedFilter({ name, label, address, onChange }: TypedFilterProps) {
  const value = address[name];
  const { text, setText, field } = useAddressText(value);
  const changeDebounced = useDebouncedInput((requested) => {
    if (isFilter(name, requested)) onChange({ [name]: requested });
  });
  const isId = name === 'eventId';
  return (
    <TextInput
      ref={field}
      size="xs"
      label={label}
      w={name === 'run' || name === 'code' ? 110 : 150}
      {...(!isId && { inputMode: 'numeric' as const })}
      value={text}
      error={isFilter(name, text) ? null : isId ? 'Starts with wev_' : 'Digits only'}
      onChange={(event) => {
        const next = event.currentTarget.value.trim();
        setText(next);
        changeDebounced(next);
      }}
    />
  );
}
