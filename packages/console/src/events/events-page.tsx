import {
  Anchor,
  Button,
  Group,
  Paper,
  SegmentedControl,
  Skeleton,
  Stack,
  Table,
  Text,
  Title,
  VisuallyHidden,
} from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { Link, useNavigate, useSearchParams } from 'react-router';
import { accountLogQuery, histogramQuery } from '../api/activity.ts';
import { useChanges } from '../api/changes.ts';
import type { AccountDelivery, Histogram } from '../api/types.ts';
import { PageHeading, Problem, useIsNarrow } from '../components/page.tsx';
import { Moment, StatusBadge } from '../components/state.tsx';
import { deliveryPath, runPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { totalOf } from '../webhook/last-day/summary.ts';
import classes from '../webhook/log/delivery-rows.module.css';
import { deliveryTone, deliveryWords, durationOf, jobWords, lastAnswerWords } from '../words/deliveries.ts';
import { EVENT_WORDS } from '../words/webhooks.ts';
import { BrushChart } from './brush-chart.tsx';
import { EventFilters } from './event-filters.tsx';
import {
  type EventsAddress,
  eventsQueryOf,
  PRESETS,
  readEventsAddress,
  sinceNow,
  writeEventsAddress,
} from './events-address.ts';
import { utcMs, utcText } from './utc.ts';

const PAGE_SIZE = 25;
const TABLE_MIN_EM = 75;
const PRESET_USUAL = PRESETS[2];

/** Activity, Events: what went to all webhooks, over time and one by one. All of what is looked at is in the address. */
export function Component() {
  const [parameters] = useSearchParams();
  const navigate = useNavigate();
  const address = readEventsAddress(parameters);
  const asked = useRef(address);
  useEffect(() => {
    asked.current = readEventsAddress(parameters);
  }, [parameters]);
  const go = (part: Partial<EventsAddress>, replace: boolean) => {
    asked.current = { ...asked.current, ...part };
    void navigate({ search: `?${writeEventsAddress(asked.current)}` }, { replace, preventScrollReset: true });
  };
  // Whoever is given the address sees the same: it has its beginning from the start.
  const needsBeginning = address.from === '';
  useEffect(() => {
    if (!needsBeginning) return;
    const current = readEventsAddress(parameters);
    const endMs = current.to === '' ? Date.now() : utcMs(current.to);
    const { from } = sinceNow(PRESET_USUAL.ms, endMs);
    void navigate({ search: `?${writeEventsAddress({ ...current, from })}` }, { replace: true });
  }, [needsBeginning, parameters, navigate]);
  return (
    <>
      <PageHeading title="Events" below="What went to your webhooks, when, and how it went." />
      {!needsBeginning && <Events address={address} onChange={go} />}
    </>
  );
}

interface EventsProps {
  address: EventsAddress;
  /** @param replace what is typed is no step to go back to */
  onChange: (part: Partial<EventsAddress>, replace: boolean) => void;
}

function Events({ address, onChange }: EventsProps) {
  const account = useAccount();
  useChanges(account.id, null);
  const query = eventsQueryOf(address);
  return (
    <Stack gap="md">
      <Presets address={address} onChange={onChange} />
      <EventFilters accountId={account.id} address={address} onChange={(part) => onChange(part, true)} />
      {query === null ? (
        <Text size="sm">The end must be later than the beginning.</Text>
      ) : (
        <>
          <OverTime
            query={query}
            onBrush={(fromMs, toMs) => onChange({ from: utcText(fromMs), to: utcText(toMs) }, false)}
          />
          <Log query={query} />
        </>
      )}
    </Stack>
  );
}

/** How far back from now; each is written as the time that it comes to. */
function Presets({ address, onChange }: EventsProps) {
  const lengthMs = address.to === '' ? Date.now() - utcMs(address.from) : Number.NaN;
  const current = PRESETS.find(({ ms }) => Math.abs(lengthMs - ms) < PRESET_TOLERANCE * ms);
  return (
    <Group gap="xs">
      <SegmentedControl
        size="xs"
        aria-label="Look back"
        value={current?.label ?? ''}
        data={PRESETS.map(({ label, words }) => ({
          value: label,
          label: (
            <>
              <span aria-hidden>{label}</span>
              <VisuallyHidden>{words}</VisuallyHidden>
            </>
          ),
        }))}
        onChange={(label) => {
          const preset = PRESETS.find((one) => one.label === label);
          if (preset !== undefined) onChange(sinceNow(preset.ms, Date.now()), false);
        }}
      />
    </Group>
  );
}

/** A window that began with a press of one keeps its name while it grows a little. */
const PRESET_TOLERANCE = 0.1;

type Asked = NonNullable<ReturnType<typeof eventsQueryOf>>;

function OverTime({ query, onBrush }: { query: Asked; onBrush: (fromMs: number, toMs: number) => void }) {
  const account = useAccount();
  const histogram = useQuery(histogramQuery(account.id, query, query.until === ''));
  if (histogram.data === undefined)
    return histogram.isError ? (
      <Problem
        title="The deliveries could not be counted"
        error={histogram.error}
        onRetry={() => void histogram.refetch()}
        isRetrying={histogram.isFetching}
      />
    ) : (
      <Skeleton height={230} role="status" aria-label="Counting" />
    );
  return (
    <Paper withBorder p="md" style={{ opacity: histogram.isPlaceholderData ? 0.5 : 1 }}>
      <Text size="sm" mb="xs" role="status">
        {totalWords(histogram.data)}
      </Text>
      {histogram.data.counted_since !== null && (
        <Text size="sm" mb="xs">
          What was created before <Moment at={histogram.data.counted_since} format="full" /> is not counted:
          it is too much to be read at once. Take filters away, or look at a shorter time.
        </Text>
      )}
      <BrushChart histogram={histogram.data} onBrush={onBrush} />
    </Paper>
  );
}

function totalWords({ totals, counted_since }: Histogram): string {
  const total = totalOf(totals);
  const noun = total === 1 ? 'delivery' : 'deliveries';
  return `${counted_since === null ? '' : 'At least '}${total.toLocaleString()} ${noun}, ${totals.failed_count.toLocaleString()} of them failed.`;
}

function Log({ query }: { query: Asked }) {
  const account = useAccount();
  const log = useInfiniteQuery(accountLogQuery(account.id, { ...query, limit: PAGE_SIZE }));
  const rows = log.data?.pages.flatMap(({ data }) => data) ?? [];
  const last = log.data?.pages.at(-1)?.extra.pagination;
  return (
    <Paper component="section" withBorder p="md" aria-labelledby={LOG_HEADING_ID}>
      <Title order={2} size="h4" id={LOG_HEADING_ID} mb="sm">
        Deliveries
      </Title>
      {log.isError && log.data === undefined && (
        <Problem
          title="The deliveries could not be loaded"
          error={log.error}
          onRetry={() => void log.refetch()}
          isRetrying={log.isFetching}
        />
      )}
      {log.isPending && <Skeleton height={240} role="status" aria-label="Loading" />}
      <div style={{ opacity: log.isPlaceholderData ? 0.5 : 1 }} aria-busy={log.isPlaceholderData}>
        {rows.length > 0 && <Rows rows={rows} />}
      </div>
      {last !== undefined && (
        <Stack gap="xs" mt="sm" align="flex-start">
          {rows.length === 0 && last.looked_until === null && <Text size="sm">No delivery matches.</Text>}
          {last.looked_until !== null && (
            <Text size="sm" role="status">
              {rows.length === 0 ? 'Nothing found so far: looked' : 'Looked'} through everything back to{' '}
              <Moment at={last.looked_until} format="full" />.
            </Text>
          )}
          {log.hasNextPage && (
            <Button
              size="xs"
              variant="default"
              onClick={() => void log.fetchNextPage()}
              loading={log.isFetchingNextPage}
            >
              {last.looked_until === null ? 'Show older ones' : 'Look further back'}
            </Button>
          )}
        </Stack>
      )}
    </Paper>
  );
}

const LOG_HEADING_ID = 'deliveries';
const HEADINGS = ['Status', 'Event', 'Webhook', 'Job', 'Run', 'When', 'Last answer', 'Took'];

function Rows({ rows }: { rows: readonly AccountDelivery[] }) {
  const isNarrow = useIsNarrow(TABLE_MIN_EM);
  if (isNarrow)
    return (
      <ul className={classes.cards} aria-label="Deliveries, newest first">
        {rows.map((delivery) => (
          <li key={delivery.id} className={classes.card}>
            <div className={classes.line}>
              <EventLink delivery={delivery} />
              <State delivery={delivery} />
            </div>
            <div className={classes.line}>
              <span>{delivery.webhook_name}</span>
              <Moment at={delivery.created_at} format="exact" />
            </div>
            <div className={`${classes.line} ${classes.dimmed}`}>
              <span>
                {jobWords(delivery)}, run {delivery.run_id}
              </span>
              <span>{lastAnswerWords(delivery)}</span>
            </div>
          </li>
        ))}
      </ul>
    );
  return (
    <Table
      className={classes.table ?? ''}
      verticalSpacing={5}
      horizontalSpacing="xs"
      aria-label="Deliveries, newest first"
    >
      <Table.Thead>
        <Table.Tr>
          {HEADINGS.map((heading) => (
            <Table.Th key={heading}>{heading}</Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((delivery) => (
          <Table.Tr
            key={delivery.id}
            className={delivery.webhook_state === 'deleted' ? '' : (classes.row ?? '')}
          >
            <Table.Td>
              <State delivery={delivery} />
            </Table.Td>
            <Table.Td>
              <EventLink delivery={delivery} />
            </Table.Td>
            <Table.Td>
              <div className={classes.job} title={delivery.webhook_name}>
                {delivery.webhook_name}
              </div>
            </Table.Td>
            <Table.Td>
              <div className={classes.job} title={delivery.job_name}>
                {jobWords(delivery)}
              </div>
            </Table.Td>
            <Table.Td>
              <RunLink runId={delivery.run_id} />
            </Table.Td>
            <Table.Td>
              <Moment at={delivery.created_at} format="exact" />
            </Table.Td>
            <Table.Td>{lastAnswerWords(delivery)}</Table.Td>
            <Table.Td>{durationOf(delivery)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function State({ delivery }: { delivery: AccountDelivery }) {
  return <StatusBadge tone={deliveryTone(delivery)}>{deliveryWords(delivery)}</StatusBadge>;
}

function RunLink({ runId }: { runId: string }) {
  const account = useAccount();
  return (
    // Above the link that covers the row.
    <Anchor
      component={Link}
      to={runPath(account.id, runId)}
      size="sm"
      style={{ position: 'relative', zIndex: 1 }}
      aria-label={`Run ${runId}`}
    >
      {runId}
    </Anchor>
  );
}

/** Opens the delivery; one of a webhook that is gone has no page any more. */
function EventLink({ delivery }: { delivery: AccountDelivery }) {
  const account = useAccount();
  const { label } = EVENT_WORDS[delivery.event_type];
  if (delivery.webhook_state === 'deleted')
    return (
      <span>
        {label}{' '}
        <Text span size="xs" c="dimmed">
          webhook deleted since
        </Text>
      </span>
    );
  return (
    <Link to={deliveryPath(account.id, delivery.subscription_id, delivery.id)} className={classes.link ?? ''}>
      {label}
      <VisuallyHidden>
        , run {delivery.run_id} to {delivery.webhook_name}, {deliveryWords(delivery).toLowerCase()}
      </VisuallyHidden>
    </Link>
  );
}
