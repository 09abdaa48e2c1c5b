import { Text } from '@mantine/core';
import type { Rates } from '../api/types.ts';
import { formatFailureRate } from '../wording/incidents.ts';
import classes from './webhook-list.module.css';

const WIDTH = 96;
const HEIGHT = 20;

/** Bars of the last 24 hours: deliveries and failures per hour. The text has the totals. */
export function Rate({ rates }: { rates: Rates | undefined }) {
  if (rates === undefined) return null;
  const { delivery_counts, failed_counts, delivery_count } = rates;
  const most = Math.max(1, ...delivery_counts);
  const step = WIDTH / delivery_counts.length;
  // Any count above 0 is visible.
  const heightOf = (count: number) => (count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT));
  return (
    <div className={classes.rate}>
      {delivery_count > 0 && (
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} aria-hidden="true">
          {delivery_counts.map((count, hour) => {
            const failed = heightOf(failed_counts[hour] ?? 0);
            const x = hour * step;
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: the index identifies the hour
              <g key={hour}>
                <rect
                  className={classes.rateAll}
                  x={x}
                  y={HEIGHT - heightOf(count)}
                  width={step - 1}
                  height={heightOf(count)}
                />
                <rect
                  className={classes.rateFailed}
                  x={x}
                  y={HEIGHT - failed}
                  width={step - 1}
                  height={failed}
                />
              </g>
            );
          })}
        </svg>
      )}
      <Text size="xs" c="dimmed">
        {formatFailureRate(rates)}
      </Text>
    </div>
  );
}
