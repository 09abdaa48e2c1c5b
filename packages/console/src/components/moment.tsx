import { Tooltip } from '@mantine/core';
import { fullLocalTime, parseTime, relativeTime, shortLocalTime, utcTime } from '../words/time.ts';
import classes from './moment.module.css';
import { useNow } from './use-now.ts';

const NEAR_MS = 90_000;

interface MomentProps {
  /** A time of the API: microseconds since the epoch as digits, or ISO 8601. */
  at: string;
  /** `relative` ("4 min ago", a date when it is long ago) or `full`: date, second and zone. */
  format?: 'relative' | 'full';
  /** False inside a link or a button: those have the focus already. */
  focusable?: boolean;
}

/** A time in the reader's own zone; UTC on hover and on focus. */
export function Moment({ at, format = 'relative', focusable = true }: MomentProps) {
  const date = parseTime(at);
  const isNear = date !== null && Math.abs(date.getTime() - Date.now()) < NEAR_MS;
  const nowMs = useNow(isNear ? 1_000 : 30_000);
  if (date === null) return <span>{at}</span>;
  const words = format === 'full' ? fullLocalTime(date) : (relativeTime(date, nowMs) ?? shortLocalTime(date));
  return (
    <Tooltip
      label={
        <>
          {fullLocalTime(date)}
          <br />
          {utcTime(date)}
        </>
      }
      events={{ hover: true, focus: true, touch: true }}
      openDelay={150}
    >
      {/* In the tab order: the exact time must be reachable without a pointer. */}
      <time dateTime={date.toISOString()} className={classes.moment} {...(focusable && { tabIndex: 0 })}>
        {words}
      </time>
    </Tooltip>
  );
}
