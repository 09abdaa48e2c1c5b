import {
  Button,
  Collapse,
  Group,
  Paper,
  SimpleGrid,
  Skeleton,
  Stack,
  Table,
  Text,
  Title,
  VisuallyHidden,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { statisticsQuery } from '../../api/deliveries.ts';
import type { WebhookKey } from '../../api/subscriptions.ts';
import type { Statistics, StatisticsBucket } from '../../api/types.ts';
import { Problem } from '../../components/page.tsx';
import { DELIVERY_STATUS_WORDS } from '../../words/deliveries.ts';
import { durationWords } from '../../words/time.ts';
import { LatencyChart, OutcomeChart } from './charts.tsx';
import { countOf, hourSpan, OUTCOMES, summaryWords, totalOf } from './summary.ts';

/** The last 24 hours of a webhook: in a sentence, in two charts, and as a table. */
export function LastDay({ webhook }: { webhook: WebhookKey }) {
  const statistics = useQuery(statisticsQuery(webhook));
  return (
    <Paper component="section" withBorder p="md" aria-labelledby="last-day">
      <Title order={2} size="h4" id="last-day" mb={4}>
        Last 24 hours
      </Title>
      {statistics.data ? (
        <Charts statistics={statistics.data} />
      ) : statistics.isError ? (
        <Problem
          title="The statistics could not be loaded"
          error={statistics.error}
          onRetry={() => void statistics.refetch()}
          isRetrying={statistics.isFetching}
        />
      ) : (
        <Stack role="status">
          <VisuallyHidden>Loading the last 24 hours</VisuallyHidden>
          <Skeleton height={20} maw={520} />
          <Skeleton height={180} />
        </Stack>
      )}
    </Paper>
  );
}

function Charts({ statistics }: { statistics: Statistics }) {
  const { buckets, totals } = statistics;
  const [showsTable, setShowsTable] = useState(false);
  const tableId = useId();
  const summary = (
    <Text size="sm" mb="sm">
      {summaryWords(statistics)}
    </Text>
  );
  if (totalOf(totals) === 0) return summary;
  return (
    <>
      {summary}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <OutcomeChart buckets={buckets} />
        <LatencyChart buckets={buckets} />
      </SimpleGrid>
      <Group mt="xs">
        <Button
          size="compact-xs"
          variant="subtle"
          aria-expanded={showsTable}
          aria-controls={tableId}
          onClick={() => setShowsTable(!showsTable)}
        >
          {showsTable ? 'Hide the table' : 'Show as a table'}
        </Button>
      </Group>
      <Collapse expanded={showsTable} id={tableId} keepMountedMode="display-none">
        {showsTable && <HoursTable buckets={buckets} />}
      </Collapse>
    </>
  );
}

/** What the charts show, newest hour first. */
function HoursTable({ buckets }: { buckets: readonly StatisticsBucket[] }) {
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
