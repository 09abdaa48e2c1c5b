import { Group, Paper, SegmentedControl, Skeleton, Stack, Text, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useNavigate, useSearchParams } from 'react-router';
import { histogramQuery } from '../api/activity.ts';
import { useChanges } from '../api/changes.ts';
import type { Histogram } from '../api/types.ts';
import { PageHeading, Problem } from '../components/page.tsx';
import { useRequestedAddress } from '../components/requested-address.ts';
import { Timestamp } from '../components/state.tsx';
import { useAccount } from '../session/session.ts';
import { totalOf } from '../webhook/statistics/summary.ts';
import { BrushChart } from './brush-chart.tsx';
import { EventFilters } from './event-filters.tsx';
import {
  type EventsAddress,
  type EventsQuery,
  PRESETS,
  readEventsAddress,
  toEventsQuery,
  windowUntilNow,
  writeEventsAddress,
} from './events-address.ts';
import { EventsLog } from './events-log.tsx';
import { utcMs, utcText } from './utc.ts';

const PRESET_DEFAULT = PRESETS[2];

/** Page "Activity, Events": deliveries of all webhooks, as a histogram and as a list. Its filters are in the URL. */
export function Component() {
  const [parameters] = useSearchParams();
  const navigate = useNavigate();
  const { address, requested } = useRequestedAddress(parameters, readEventsAddress);
  const go = (part: Partial<EventsAddress>, replace: boolean) => {
    requested.current = { ...requested.current, ...part };
    void navigate(
      { search: `?${writeEventsAddress(requested.current)}` },
      { replace, preventScrollReset: true },
    );
  };
  // The start of the range is written into the URL, so that everyone who opens a shared link sees the same range.
  const needsBeginning = address.from === '';
  useEffect(() => {
    if (!needsBeginning) return;
    const current = readEventsAddress(parameters);
    const endMs = current.to === '' ? Date.now() : utcMs(current.to);
    const { from } = windowUntilNow(PRESET_DEFAULT.ms, endMs);
    void navigate({ search: `?${writeEventsAddress({ ...current, from })}` }, { replace: true });
  }, [needsBeginning, parameters, navigate]);
  return (
    <>
      <PageHeading title="Events" subtitle="Deliveries of all webhooks over time." />
      {!needsBeginning && <Events address={address} onChange={go} />}
    </>
  );
}

interface EventsProps {
  address: EventsAddress;
  /** @param replace whether to replace the history entry, as typing does */
  onChange: (part: Partial<EventsAddress>, replace: boolean) => void;
}

function Events({ address, onChange }: EventsProps) {
  const account = useAccount();
  useChanges(account.id, null);
  const query = toEventsQuery(address);
  return (
    <Stack gap="md">
      <Presets address={address} onChange={onChange} />
      <EventFilters accountId={account.id} address={address} onChange={(part) => onChange(part, true)} />
      {query === null ? (
        <Text size="sm">The end must be later than the start.</Text>
      ) : (
        <>
          <DeliveryHistogram
            query={query}
            onBrush={(fromMs, toMs) => onChange({ from: utcText(fromMs), to: utcText(toMs) }, false)}
          />
          <EventsLog query={query} />
        </>
      )}
    </Stack>
  );
}

/** Buttons for the last hours or days. A click writes the resulting start into the URL. */
function Presets({ address, onChange }: EventsProps) {
  const lengthMs = address.to === '' ? Date.now() - utcMs(address.from) : Number.NaN;
  const current = PRESETS.find(({ ms }) => Math.abs(lengthMs - ms) < PRESET_TOLERANCE * ms);
  return (
    <Group gap="xs">
      <SegmentedControl
        size="xs"
        aria-label="Time range"
        value={current?.label ?? ''}
        data={PRESETS.map(({ label, description }) => ({
          value: label,
          label: (
            <>
              <span aria-hidden>{label}</span>
              <VisuallyHidden>{description}</VisuallyHidden>
            </>
          ),
        }))}
        onChange={(label) => {
          const preset = PRESETS.find((one) => one.label === label);
          if (preset !== undefined) onChange(windowUntilNow(preset.ms, Date.now()), false);
        }}
      />
    </Group>
  );
}

/** A range keeps the label of its preset while it grows by less than this share. */
const PRESET_TOLERANCE = 0.1;

function DeliveryHistogram({
  query,
  onBrush,
}: {
  query: EventsQuery;
  onBrush: (fromMs: number, toMs: number) => void;
}) {
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
        {formatTotal(histogram.data)}
      </Text>
      {histogram.data.counted_since !== null && (
        <Text size="sm" mb="xs">
          Deliveries created before <Timestamp at={histogram.data.counted_since} format="full" /> are not
          counted, because there are too many. Remove filters, or choose a shorter time range.
        </Text>
      )}
      <BrushChart histogram={histogram.data} onBrush={onBrush} />
    </Paper>
  );
}

function formatTotal({ totals, counted_since }: Histogram): string {
  const total = totalOf(totals);
  const noun = total === 1 ? 'delivery' : 'deliveries';
  return `${counted_since === null ? '' : 'At least '}${total.toLocaleString()} ${noun}, ${totals.failed_count.toLocaleString()} of them failed.`;
}
