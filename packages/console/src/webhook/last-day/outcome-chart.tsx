import { useId } from 'react';
import type { DeliveryStatus, StatisticsBucket } from '../../api/types.ts';
import { DELIVERY_STATUS_WORDS } from '../../words/deliveries.ts';
import classes from './hour-chart.module.css';
import { HourChart, type Plot } from './hour-chart.tsx';
import { OutcomePatterns, patternId } from './outcome-patterns.tsx';
import { countOf, OUTCOMES, totalOf } from './outcomes.ts';
import { axisOf, stackOf } from './scale.ts';
import { hourWords } from './summary.ts';

/** The least that is still seen: one failure among thousands. */
const SLICE_PX_MIN = 3;
const compactFormat = new Intl.NumberFormat(undefined, { notation: 'compact' });

/** Deliveries of each hour by what became of them, each outcome with a pattern of its own. */
export function OutcomeChart({ buckets }: { buckets: readonly StatisticsBucket[] }) {
  const id = useId();
  const axis = axisOf(Math.max(...buckets.map(totalOf)));
  const outcomes = OUTCOMES.filter((outcome) => buckets.some((bucket) => countOf(bucket, outcome) > 0));
  return (
    <HourChart
      title="Deliveries per hour"
      buckets={buckets}
      axis={axis}
      tickWords={(value) => compactFormat.format(value)}
      hourWords={hourWords}
      legend={<Legend id={id} outcomes={outcomes} />}
    >
      {(plot) => (
        <>
          <OutcomePatterns id={id} />
          {buckets.map((bucket, index) => (
            <Bar key={bucket.hour_start} id={id} bucket={bucket} index={index} plot={plot} />
          ))}
        </>
      )}
    </HourChart>
  );
}

function Bar({
  id,
  bucket,
  index,
  plot,
}: {
  id: string;
  bucket: StatisticsBucket;
  index: number;
  plot: Plot;
}) {
  const slices = stackOf(OUTCOMES.map((outcome) => [outcome, countOf(bucket, outcome)] as const));
  const gap = Math.min(3, plot.bandWidth * 0.2);
  let top = plot.bottom;
  return slices.map(({ name, count, below }) => {
    const height = Math.max(SLICE_PX_MIN, plot.yOf(below) - plot.yOf(below + count));
    top -= height;
    return (
      <OutcomeRect
        key={name}
        id={id}
        outcome={name}
        x={plot.xOf(index) + gap / 2}
        y={top}
        width={plot.bandWidth - gap}
        height={height}
      />
    );
  });
}

interface OutcomeRectProps {
  id: string;
  outcome: DeliveryStatus;
  x: number;
  y: number;
  width: number;
  height: number;
}

function OutcomeRect({ id, outcome, ...box }: OutcomeRectProps) {
  if (outcome === 'delivered') return <rect {...box} className={classes.delivered} />;
  const inner = {
    x: box.x + 0.5,
    y: box.y + 0.5,
    width: Math.max(0, box.width - 1),
    height: Math.max(0, box.height - 1),
  };
  return (
    <>
      <rect {...box} fill={`url(#${patternId(id, outcome)})`} />
      <rect {...inner} className={`${classes.outline} ${classes[outcome]}`} />
    </>
  );
}

function Legend({ id, outcomes }: { id: string; outcomes: readonly DeliveryStatus[] }) {
  return (
    <ul className={classes.legend}>
      {outcomes.map((outcome) => (
        <li key={outcome}>
          <svg width={14} height={14} aria-hidden>
            <OutcomePatterns id={`${id}-${outcome}`} />
            <OutcomeRect id={`${id}-${outcome}`} outcome={outcome} x={0} y={0} width={14} height={14} />
          </svg>
          {DELIVERY_STATUS_WORDS[outcome]}
        </li>
      ))}
    </ul>
  );
}
