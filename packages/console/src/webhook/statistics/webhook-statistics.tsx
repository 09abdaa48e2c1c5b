import {
  Button,
  Collapse,
  Group,
  Paper,
  SegmentedControl,
  SimpleGrid,
  Skeleton,
  Stack,
  Text,
  Title,
  VisuallyHidden,
} from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { statisticsQuery } from '../../api/deliveries.ts';
import type { WebhookKey } from '../../api/subscriptions.ts';
import type { Statistics, StatisticsBucket } from '../../api/types.ts';
import { DeferredRender, Problem } from '../../components/page.tsx';
import { Table, TableScroll, tableClasses } from '../../components/table.tsx';
import { DELIVERY_STATUS_LABELS } from '../../wording/deliveries.ts';
import { formatDuration } from '../../wording/time.ts';
import { LatencyChart, OutcomeChart } from './charts.tsx';
import {
  countOf,
  describeTotals,
  formatHourSpan,
  OUTCOMES,
  PERIOD_DEFAULT,
  PERIODS,
  type PeriodHours,
  totalOf,
} from './summary.ts';

interface WebhookStatisticsProps {
  webhook: WebhookKey;
  /** Called with the start of the selected hour, in microseconds since the epoch, as digits. */
  onHour: (hourStart: string) => void;
}

/** Statistics of the last day or week: a summary, two charts, and a table on demand. */
export function WebhookStatistics({ webhook, onHour }: WebhookStatisticsProps) {
  const [hours, setHours] = useState<PeriodHours>(PERIOD_DEFAULT);
  const statistics = useQuery({ ...statisticsQuery(webhook, hours), placeholderData: keepPreviousData });
  return (
    <Paper component="section" withBorder p="md" aria-labelledby="statistics">
      <Group justify="space-between" mb={4}>
        <Title order={2} size="h4" id="statistics">
          Last {PERIODS[hours]}
        </Title>
        <SegmentedControl
          size="xs"
          aria-label="Time range"
          value={String(hours)}
          onChange={(value) => setHours(Number(value) as PeriodHours)}
          data={Object.entries(PERIODS).map(([value, label]) => ({ value, label }))}
        />
      </Group>
      {statistics.data ? (
        <DeferredRender fallback={<Loading hours={hours} />}>
          <Charts
            statistics={statistics.data}
            hours={statistics.isPlaceholderData ? otherThan(hours) : hours}
            onHour={onHour}
          />
        </DeferredRender>
      ) : statistics.isError ? (
        <Problem
          title="The statistics could not be loaded"
          error={statistics.error}
          onRetry={() => void statistics.refetch()}
          isRetrying={statistics.isFetching}
        />
      ) : (
        <Loading hours={hours} />
      )}
    </Paper>
  );
}

function Loading({ hours }: { hours: PeriodHours }) {
  return (
    <Stack role="status">
      <VisuallyHidden>Loading the last {PERIODS[hours]}</VisuallyHidden>
      <Skeleton height={20} maw={520} />
      <Skeleton height={180} />
    </Stack>
  );
}

/** Returns the period of the data that are still shown while those of the new period are loading. */
function otherThan(hours: PeriodHours): PeriodHours {
  return hours === 24 ? 168 : 24;
}

interface ChartsProps extends Pick<WebhookStatisticsProps, 'onHour'> {
  statistics: Statistics;
  hours: PeriodHours;
}

function Charts({ statistics, hours, onHour }: ChartsProps) {
  const { buckets, totals } = statistics;
  const [showsTable, setShowsTable] = useState(false);
  const tableId = useId();
  const summary = (
    <Text size="sm" mb="sm">
      {describeTotals(statistics, hours)}
    </Text>
  );
  if (totalOf(totals) === 0) return summary;
  return (
    <>
      {summary}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <OutcomeChart buckets={buckets} onHour={onHour} />
        <LatencyChart buckets={buckets} onHour={onHour} />
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
        {showsTable && <HoursTable buckets={buckets} hours={hours} />}
      </Collapse>
    </>
  );
}

/** The values of the charts as a table, newest hour first. */
function HoursTable({ buckets, hours }: { buckets: readonly StatisticsBucket[]; hours: PeriodHours }) {
  return (
    <TableScroll minWidth={520} maxHeight={360} tabIndex={0}>
      <Table verticalSpacing={4} stickyHeader aria-label={`The last ${PERIODS[hours]}, newest first`}>
        <thead>
          <tr>
            <th>Hour (your time)</th>
            {OUTCOMES.map((outcome) => (
              <th key={outcome} className={tableClasses.number}>
                {DELIVERY_STATUS_LABELS[outcome]}
              </th>
            ))}
            <th className={tableClasses.number}>p50</th>
            <th className={tableClasses.number}>p95</th>
          </tr>
        </thead>
        <tbody>
          {buckets.toReversed().map((bucket) => (
            <tr key={bucket.hour_start}>
              <th scope="row" className={tableClasses.plain}>
                {formatHourSpan(bucket.hour_start)}
              </th>
              {OUTCOMES.map((outcome) => (
                <td key={outcome} className={tableClasses.number}>
                  {countOf(bucket, outcome).toLocaleString()}
                </td>
              ))}
              <td className={tableClasses.number}>{latency(bucket.p50_ms)}</td>
              <td className={tableClasses.number}>{latency(bucket.p95_ms)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </TableScroll>
  );
}

function latency(ms: number | null): string {
  return ms === null ? '–' : formatDuration(ms);
}
