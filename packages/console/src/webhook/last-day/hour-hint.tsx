import type { StatisticsBucket } from '../../api/types.ts';
import classes from './hour-chart.module.css';
import { hourSpan } from './hours.ts';

const HALF_PX = 95;

/** The values of an hour beside it. What has the focus says the same to screen readers. */
export function HourHint({
  bucket,
  words,
  x,
  width,
}: {
  bucket: StatisticsBucket;
  words: string;
  x: number;
  width: number;
}) {
  const left = Math.min(Math.max(x - HALF_PX, 0), Math.max(0, width - 2 * HALF_PX));
  return (
    <div className={classes.hint} style={{ left, width: 2 * HALF_PX }} aria-hidden>
      <strong>{hourSpan(bucket.hour_start)}</strong>
      {words.split(', ').map((line) => (
        <span key={line}>{line}</span>
      ))}
    </div>
  );
}
