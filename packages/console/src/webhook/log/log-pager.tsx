import { Button, Group, Text, TextInput } from '@mantine/core';
import { IconChevronLeft, IconChevronRight, IconChevronsLeft, IconChevronsRight } from '@tabler/icons-react';
import { type ComponentType, useEffect, useState } from 'react';
import { Link } from 'react-router';
import { isCountCapped } from '../../api/types.ts';
import { countPages, formatExtent, pageFromText } from './log-address.ts';

interface LogPagerProps {
  page: number;
  count: number;
  totalCount: number;
  /** Returns the query string of a page, for a link. */
  searchOf: (page: number) => string;
  onPage: (page: number) => void;
}

/** Navigation of a long log: links to adjacent pages and to both ends, and a field for any page. */
export function LogPager({ page, count, totalCount, searchOf, onPage }: LogPagerProps) {
  const last = countPages(totalCount);
  const isCapped = isCountCapped(totalCount);
  const link = (label: string, target: number, Icon: ComponentType<{ size: number }>) => (
    <PageLink label={label} search={target === page ? null : searchOf(target)} icon={Icon} />
  );
  return (
    <Group justify="space-between" gap="sm" component="nav" aria-label="Pages of deliveries">
      <Text size="sm" c="dimmed">
        {formatExtent({ page, count, totalCount })}
      </Text>
      {last > 1 && (
        <Group gap={6} wrap="nowrap">
          {link('First page', 1, IconChevronsLeft)}
          {link('Previous page', Math.max(1, page - 1), IconChevronLeft)}
          <PageField page={page} totalCount={totalCount} onPage={onPage} />
          <Text size="sm" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
            of {last.toLocaleString()}
            {isCapped && '+'}
          </Text>
          {link('Next page', Math.min(last, page + 1), IconChevronRight)}
          {link(isCapped ? 'Last counted page' : 'Last page', last, IconChevronsRight)}
        </Group>
      )}
    </Group>
  );
}

function PageLink({
  label,
  search,
  icon: Icon,
}: {
  label: string;
  search: string | null;
  icon: ComponentType<{ size: number }>;
}) {
  const buttonProps = { size: 'compact-sm', variant: 'default', px: 6, 'aria-label': label } as const;
  if (search === null)
    return (
      <Button {...buttonProps} disabled>
        <Icon size={16} />
      </Button>
    );
  return (
    <Button {...buttonProps} component={Link} to={{ search }} title={label} preventScrollReset>
      <Icon size={16} />
    </Button>
  );
}

function PageField({
  page,
  totalCount,
  onPage,
}: {
  page: number;
  totalCount: number;
  onPage: (page: number) => void;
}) {
  const [text, setText] = useState(String(page));
  useEffect(() => setText(String(page)), [page]);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const target = pageFromText(text, totalCount);
        setText(String(target ?? page));
        if (target !== null && target !== page) onPage(target);
      }}
    >
      <TextInput
        size="xs"
        w={70}
        inputMode="numeric"
        aria-label="Page; press Enter to go there"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onBlur={() => setText(String(page))}
        styles={{ input: { textAlign: 'center' } }}
      />
    </form>
  );
}
