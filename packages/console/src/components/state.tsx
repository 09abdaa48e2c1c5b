import { Group, Text } from '@mantine/core';
import { IconCircleCheck, IconCircleDashed, IconCircleX, IconClockHour4 } from '@tabler/icons-react';
import { type ReactNode, useEffect, useState } from 'react';
import type { Subscription } from '../api/types.ts';
import { formatStatus, statusTone, type Tone } from '../wording/http-status.ts';
import {
  formatExactLocalTime,
  formatFullLocalTime,
  formatRelativeTime,
  formatShortLocalTime,
  formatUtcTime,
  parseTime,
} from '../wording/time.ts';
import classes from './components.module.css';
import { Hint } from './lazy-popover.tsx';

const ICONS = {
  good: IconCircleCheck,
  bad: IconCircleX,
  waiting: IconClockHour4,
  neutral: IconCircleDashed,
};

/** A state as text with an icon and a colour: the colour alone never conveys it. */
export function StatusBadge({ tone, children }: { tone: Tone; children: ReactNode }) {
  const Icon = ICONS[tone];
  return (
    <span className={classes.badge} data-tone={tone}>
      <Icon size={15} aria-hidden className={classes.icon} />
      <span>{children}</span>
    </span>
  );
}

const RECENT_MS = 90_000;

interface TimestampProps {
  /** A time of the API: microseconds since the epoch as digits, or ISO 8601. */
  at: string;
  /**
   * `relative` ("4 min ago", or a date if it is long ago), `full` (date, second and zone), or `exact`: to the second, for
   * lists, where it is not focusable.
   */
  format?: 'relative' | 'exact' | 'full';
  /** False inside a link or a button, which has the focus already. */
  focusable?: boolean;
}

/** A time in the user's time zone, with a tooltip that also has UTC. */
export function Timestamp({ at, format = 'relative', focusable = format !== 'exact' }: TimestampProps) {
  const date = parseTime(at);
  const isRecent = date !== null && Math.abs(date.getTime() - Date.now()) < RECENT_MS;
  const nowMs = useNow(isRecent ? 1_000 : 30_000);
  if (date === null) return <span>{at}</span>;
  const relative = formatRelativeTime(date, nowMs);
  return (
    <Hint
      label={
        <>
          {formatFullLocalTime(date)}
          <br />
          {formatUtcTime(date)}
          {format === 'exact' && relative !== null && (
            <>
              <br />
              {relative}
            </>
          )}
        </>
      }
    >
      {(target) => (
        // The tooltip must be reachable without a pointer.
        <time
          {...target}
          dateTime={date.toISOString()}
          className={classes.timestamp}
          {...(focusable && { tabIndex: 0 })}
        >
          {format === 'relative' && (relative ?? formatShortLocalTime(date))}
          {format === 'exact' && formatExactLocalTime(date, nowMs)}
          {format === 'full' && formatFullLocalTime(date)}
        </time>
      )}
    </Hint>
  );
}

/** Returns the current time in ms and rerenders the component at the interval. */
export function useNow(intervalMs: number): number {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), intervalMs);
    return () => clearInterval(timer);
  }, [intervalMs]);
  return nowMs;
}

/** Result and time of the latest attempt, and since when the webhook fails. */
export function LastStatus({ subscription }: { subscription: Subscription }) {
  const { http_status_code: code, error_code = null, dispatched_at, health } = subscription;
  return (
    <Group gap="2px 8px">
      <StatusBadge tone={statusTone(code, error_code)}>{formatStatus(code, error_code)}</StatusBadge>
      {dispatched_at !== undefined && (
        <Text span size="xs" c="dimmed">
          <Timestamp at={dispatched_at} />
        </Text>
      )}
      {health?.failing_since !== undefined && (
        <Text span size="xs" c="red">
          failing since <Timestamp at={health.failing_since} />
        </Text>
      )}
    </Group>
  );
}
