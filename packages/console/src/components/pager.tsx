import { Group, NativeSelect, Pagination, Text } from '@mantine/core';
import { useIsPhone } from './page.tsx';

const CONTROL_LABELS = {
  first: 'First page',
  previous: 'Previous page',
  next: 'Next page',
  last: 'Last page',
};

interface PagerProps {
  /** From 1. */
  page: number;
  pageSize: number;
  totalCount: number;
  onPage: (page: number) => void;
  onPageSize?: (pageSize: number) => void;
  pageSizes?: readonly number[];
  /** What is counted, in the plural: "webhooks". */
  what: string;
}

/** Which part of a list is shown, and ways to the rest of it. */
export function Pager({ page, pageSize, totalCount, onPage, onPageSize, pageSizes, what }: PagerProps) {
  const isPhone = useIsPhone();
  const pageCount = Math.max(1, Math.ceil(totalCount / pageSize));
  const first = Math.min(totalCount, (page - 1) * pageSize + 1);
  const last = Math.min(totalCount, page * pageSize);
  return (
    <Group justify="space-between" gap="sm" component="nav" aria-label={`Pages of ${what}`}>
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
      {onPageSize !== undefined && pageSizes !== undefined && (
        <Group gap={8}>
          <Text size="sm" c="dimmed" aria-hidden>
            Per page
          </Text>
          <NativeSelect
            size="xs"
            aria-label={`${what} per page`}
            value={String(pageSize)}
            data={pageSizes.map(String)}
            onChange={(event) => onPageSize(Number(event.currentTarget.value))}
          />
        </Group>
      )}
    </Group>
  );
}
