import { Table } from '@mantine/core';
import type { StatisticsBucket } from '../../api/types.ts';
import { DELIVERY_STATUS_WORDS } from '../../words/deliveries.ts';
import { durationWords } from '../../words/time.ts';
import { hourSpan } from './hours.ts';
import { countOf, OUTCOMES } from './outcomes.ts';

/** What the charts show, newest hour first. */
export function HoursTable({ buckets }: { buckets: readonly StatisticsBucket[] }) {
  return (
    <Table.ScrollContainer minWidth={520} maxHeight={360} type="native" tabIndex={0}>
      <Table verticalSpacing={4} tabularNums stickyHeader aria-label="The last 24 hours, newest first">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Hour (your time)</Table.Th>
            {OUTCOMES.map((outcome) => (
              <Table.Th key={outcome} ta="right">
                {DELIVERY_STATUS_WORDS[outcome]}
              </Table.Th>
            ))}
            <Table.Th ta="right">p50</Table.Th>
            <Table.Th ta="right">p95</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {buckets.toReversed().map((bucket) => (
            <Table.Tr key={bucket.hour_start}>
              <Table.Th scope="row" fw={400}>
                {hourSpan(bucket.hour_start)}
              </Table.Th>
              {OUTCOMES.map((outcome) => (
                <Table.Td key={outcome} ta="right">
                  {countOf(bucket, outcome).toLocaleString()}
                </Table.Td>
              ))}
              <Table.Td ta="right">{latency(bucket.p50_ms)}</Table.Td>
              <Table.Td ta="right">{latency(bucket.p95_ms)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function latency(ms: number | null): string {
  return ms === null ? '–' : durationWords(ms);
}
