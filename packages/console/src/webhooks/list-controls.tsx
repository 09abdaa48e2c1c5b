import {
  Button,
  Checkbox,
  CloseButton,
  Group,
  NativeSelect,
  Pagination,
  Text,
  TextInput,
} from '@mantine/core';
import { IconSearch, IconX } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import { useSearchParams } from 'react-router';
import { useIsPhone } from '../components/page.tsx';
import { useRequestedAddress } from '../components/requested-address.ts';

const PAGE_SIZES = [10, 25, 50, 100] as const;
const PAGE_SIZE_DEFAULT = 10;

export interface ListParameters {
  search: string;
  /** Page number, from 1. */
  page: number;
  pageSize: number;
  order: Order;
  isFailingOnly: boolean;
  /** Labels that each webhook of the list has: `name` or `name:value`. */
  labels: string[];
}

/** Orders of the list, by their names in the API. */
const ORDERS = {
  failing_since: 'Failing first',
  created_at: 'Newest first',
  name: 'By name',
  dispatched_at: 'Latest attempt first',
} as const;

type Order = keyof typeof ORDERS;

const ORDER_DEFAULT: Order = 'failing_since';
const ORDER_NAMES = Object.keys(ORDERS) as Order[];

/** Parses the URL: `?search=&sort=&failing=&label=&page=&size=`. Invalid values are ignored. */
export function readListParameters(parameters: URLSearchParams): ListParameters {
  const size = Number(parameters.get('size'));
  const page = Number(parameters.get('page'));
  return {
    search: parameters.get('search') ?? '',
    page: Number.isSafeInteger(page) && page >= 1 ? page : 1,
    pageSize: PAGE_SIZES.find((option) => option === size) ?? PAGE_SIZE_DEFAULT,
    order: ORDER_NAMES.find((option) => option === parameters.get('sort')) ?? ORDER_DEFAULT,
    isFailingOnly: parameters.get('failing') === 'true',
    labels: [...new Set(parameters.getAll('label'))].filter((label) => label !== ''),
  };
}

export function useListParameters(): [ListParameters, (change: Partial<ListParameters>) => void] {
  const [parameters, setParameters] = useSearchParams();
  const { address, requested } = useRequestedAddress(parameters, readListParameters);

  function change(changed: Partial<ListParameters>) {
    const nextParameters = { ...requested.current, page: 1, ...changed };
    requested.current = nextParameters;
    const isTyping = changed.search !== undefined;
    setParameters(
      (previous) => {
        const next = new URLSearchParams(previous);
        setUnlessDefault(next, 'search', nextParameters.search, '');
        setUnlessDefault(next, 'sort', nextParameters.order, ORDER_DEFAULT);
        setUnlessDefault(next, 'failing', String(nextParameters.isFailingOnly), 'false');
        next.delete('label');
        for (const label of nextParameters.labels) next.append('label', label);
        setUnlessDefault(next, 'page', String(nextParameters.page), '1');
        setUnlessDefault(next, 'size', String(nextParameters.pageSize), String(PAGE_SIZE_DEFAULT));
        return next;
      },
      // Otherwise every pause in typing would add an entry to the history.
      { replace: isTyping, preventScrollReset: true },
    );
  }

  return [address, change];
}

function setUnlessDefault(
  parameters: URLSearchParams,
  name: string,
  value: string,
  defaultValue: string,
): void {
  if (value === defaultValue) parameters.delete(name);
  else parameters.set(name, value);
}

const DEBOUNCE_MS = 250;
const CHARACTERS_MAX = 255;

/** Reports its text once typing pauses. */
export function SearchField({ value, onSearch }: { value: string; onSearch: (text: string) => void }) {
  const [text, setText] = useState(value);
  const reportedText = useRef(value);
  const onSearchRef = useRef(onSearch);
  onSearchRef.current = onSearch;

  // The URL was changed by other means than typing: by the back button or a link.
  useEffect(() => {
    if (value === reportedText.current) return;
    reportedText.current = value;
    setText(value);
  }, [value]);

  useEffect(() => {
    const trimmed = text.trim();
    if (trimmed === reportedText.current) return;
    const timer = setTimeout(() => {
      reportedText.current = trimmed;
      onSearchRef.current(trimmed);
    }, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text]);

  return (
    <TextInput
      type="text"
      role="searchbox"
      aria-label="Search webhooks"
      placeholder="Search name, endpoint or description"
      value={text}
      maxLength={CHARACTERS_MAX}
      onChange={(event) => setText(event.currentTarget.value)}
      leftSection={<IconSearch size={16} aria-hidden />}
      rightSection={
        text !== '' && <CloseButton size="sm" aria-label="Clear the search" onClick={() => setText('')} />
      }
      flex={1}
      maw={420}
      miw={180}
    />
  );
}

export function OrderSelect({ value, onChange }: { value: Order; onChange: (order: Order) => void }) {
  return (
    <NativeSelect
      aria-label="Order of the webhooks"
      value={value}
      data={ORDER_NAMES.map((name) => ({ value: name, label: ORDERS[name] }))}
      onChange={(event) => {
        const order = ORDER_NAMES.find((name) => name === event.currentTarget.value);
        if (order) onChange(order);
      }}
    />
  );
}

export function FailingOnly({ isOn, onChange }: { isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <Checkbox
      label="Failing only"
      checked={isOn}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}

/** The labels by which the list is filtered; a click on one removes it. */
export function LabelFilters({
  labels,
  onChange,
}: {
  labels: readonly string[];
  onChange: (labels: string[]) => void;
}) {
  return labels.map((label) => (
    <Button
      key={label}
      size="compact-sm"
      variant="light"
      aria-label={`Remove the filter by label ${label}`}
      rightSection={<IconX size={14} aria-hidden />}
      onClick={() => onChange(labels.filter((other) => other !== label))}
    >
      {label}
    </Button>
  ));
}

const CONTROL_LABELS = {
  first: 'First page',
  previous: 'Previous page',
  next: 'Next page',
  last: 'Last page',
};

interface PagerProps {
  /** Page number, from 1. */
  page: number;
  pageSize: number;
  totalCount: number;
  onPage: (page: number) => void;
  onPageSize: (pageSize: number) => void;
}

/** Shows the range of listed rows, and links to other pages. */
export function Pager({ page, pageSize, totalCount, onPage, onPageSize }: PagerProps) {
  const isPhone = useIsPhone();
  const pageCount = Math.max(1, Math.ceil(totalCount / pageSize));
  const first = Math.min(totalCount, (page - 1) * pageSize + 1);
  const last = Math.min(totalCount, page * pageSize);
  return (
    <Group justify="space-between" gap="sm" component="nav" aria-label="Pages of webhooks">
      <Text size="sm" c="dimmed" role="status">
        {first.toLocaleString()}–{last.toLocaleString()} of {totalCount.toLocaleString()}
      </Text>
      {pageCount > 1 && (
        <Pagination
          size="sm"
          total={pageCount}
          value={page}
          onChange={onPage}
          siblings={isPhone ? 0 : 1}
          getControlProps={(control) => ({ 'aria-label': CONTROL_LABELS[control] })}
          getItemProps={(number) => ({ 'aria-label': `Page ${number}` })}
        />
      )}
      <Group gap={8}>
        <Text size="sm" c="dimmed" aria-hidden>
          Per page
        </Text>
        <NativeSelect
          size="xs"
          aria-label="Webhooks per page"
          value={String(pageSize)}
          data={PAGE_SIZES.map(String)}
          onChange={(event) => onPageSize(Number(event.currentTarget.value))}
        />
      </Group>
    </Group>
  );
}
