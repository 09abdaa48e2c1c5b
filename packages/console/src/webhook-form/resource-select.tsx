import { MultiSelect } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react';
import { type ResourceKind, resourceSearchQuery, resourcesByIdQuery } from '../api/filters.ts';

const DEBOUNCE_MS = 200;

interface ResourceSelectProps {
  accountId: number;
  kind: ResourceKind;
  /** "Environments" */
  label: string;
  /** "Environment", for ids whose name is unknown. */
  singular: string;
  value: string[];
  onChange: (ids: string[]) => void;
  error?: ReactNode;
}

/** Selects environments or projects by name, with a search on the server. */
export function ResourceSelect({ accountId, kind, label, singular, value, ...field }: ResourceSelectProps) {
  const [search, setSearch] = useState('');
  const [debounced] = useDebouncedValue(search.trim(), DEBOUNCE_MS);
  const found = useQuery(resourceSearchQuery(accountId, kind, debounced)).data ?? [];
  const [initialIds] = useState(value);
  const chosen = useQuery(resourcesByIdQuery(accountId, kind, initialIds)).data ?? [];
  // A selected resource keeps its name when the next search does not return it.
  const names = useRef(new Map<string, string>());
  for (const { id, name } of [...chosen, ...found]) names.current.set(String(id), name);
  const ids = [...new Set([...found.map(({ id }) => String(id)), ...value])];
  return (
    <MultiSelect
      {...field}
      label={label}
      placeholder={value.length === 0 ? `All ${kind}` : ''}
      data={ids.map((id) => ({ value: id, label: names.current.get(id) ?? `${singular} ${id}` }))}
      value={value}
      searchable
      searchValue={search}
      onSearchChange={setSearch}
      clearable={value.length > 0}
      nothingFoundMessage={`No ${kind} found.`}
      maxDropdownHeight={280}
      // Enter selects, and must not submit the form.
      wrapperProps={{ onKeyDown: (event: KeyboardEvent) => event.key === 'Enter' && event.preventDefault() }}
    />
  );
}
