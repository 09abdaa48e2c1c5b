import { useId } from 'react';
import type { DeliveryStatus, StatisticsBucket } from '../../api/types.ts';
import { DELIVERY_STATUS_LABELS } from '../../wording/deliveries.ts';
import { formatDuration } from '../../wording/time.ts';
import classes from './hour-chart.module.css';
import { HourChart, type Plot } from './hour-chart.tsx';
import { createAxis, splitAtGaps, stackSlices } from './scale.ts';
import { countOf, formatHourCounts, formatHourLatency, OUTCOMES, totalOf } from './summary.ts';

/** Minimum height of a slice, so that one failure among thousands is visible. */
const SLICE_PX_MIN = 3;
const compactFormat = new Intl.NumberFormat(undefined, { notation: 'compact' });

interface ChartProps {
  buckets: readonly StatisticsBucket[];
  /** Called with the start of the selected hour, in microseconds since the epoch, as digits. */
  onHour: (hourStart: string) => void;
}

/** Deliveries per hour and outcome. Each outcome but `delivered` has a pattern. */
export function OutcomeChart({ buckets, onHour }: ChartProps) {
  const id = useId();
  const axis = createAxis(Math.max(...buckets.map(totalOf)));
  const outcomes = OUTCOMES.filter((outcome) => buckets.some((bucket) => countOf(bucket, outcome) > 0));
  return (
    <HourChart
      title="Deliveries per hour"
      buckets={buckets}
      axis={axis}
      formatTick={(value) => compactFormat.format(value)}
      describeHour={formatHourCounts}
      onHour={onHour}
      legend={<OutcomeLegend id={id} outcomes={outcomes} />}
    >
      {(plot) => (
        <>
          <OutcomePatterns id={id} />
          {buckets.map((bucket, index) => (
            <OutcomeBar
              key={bucket.hour_start}
              id={id}
              bucket={bucket}
              x={plot.xOf(index)}
              bandWidth={plot.bandWidth}
              plot={plot}
            />
          ))}
        </>
      )}
    </HourChart>
  );
}

interface OutcomeBarProps {
  id: string;
  bucket: Parameters<typeof countOf>[0];
  /** Left edge of the band that contains the bar. */
  x: number;
  bandWidth: number;
  plot: Pick<Plot, 'bottom' | 'yOf'>;
}

/** Stacked bar of the outcomes of a bucket. */
export function OutcomeBar({ id, bucket, x, bandWidth, plot }: OutcomeBarProps) {
  const slices = stackSlices(OUTCOMES.map((outcome) => [outcome, countOf(bucket, outcome)] as const));
  const gap = Math.min(3, bandWidth * 0.2);
  let top = plot.bottom;
  return slices.map(({ name, count, offset }) => {
    const height = Math.max(SLICE_PX_MIN, plot.yOf(offset) - plot.yOf(offset + count));
    top -= height;
    return (
      <OutcomeRect
        key={name}
        id={id}
        outcome={name}
        x={x + gap / 2}
        y={top}
        width={bandWidth - gap}
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

export function OutcomeLegend({ id, outcomes }: { id: string; outcomes: readonly DeliveryStatus[] }) {
  return (
    <ul className={classes.legend}>
      {outcomes.map((outcome) => (
        <li key={outcome}>
          <svg width={14} height={14} aria-hidden>
            <OutcomePatterns id={`${id}-${outcome}`} />
            <OutcomeRect id={`${id}-${outcome}`} outcome={outcome} x={0} y={0} width={14} height={14} />
          </svg>
          {DELIVERY_STATUS_LABELS[outcome]}
        </li>
      ))}
    </ul>
  );
}

const SIZE = 6;

function patternId(id: string, outcome: DeliveryStatus): string {
  return `${id}-pattern-${outcome}`;
}

/** Patterns that distinguish the outcomes without colours: stripes for failed, dots for pending, lines for cancelled. */
export function OutcomePatterns({ id }: { id: string }) {
  const pattern = { width: SIZE, height: SIZE, patternUnits: 'userSpaceOnUse' } as const;
  const ground = <rect width={SIZE} height={SIZE} className={classes.patternGround} />;
  return (
    <defs>
      <pattern {...pattern} id={patternId(id, 'failed')} patternTransform="rotate(45)">
        {ground}
        <rect width={SIZE / 2} height={SIZE} className={classes.failedFill} />
      </pattern>
      <pattern {...pattern} id={patternId(id, 'pending')}>
        {ground}
        <circle cx={SIZE / 2} cy={SIZE / 2} r={1.6} className={classes.pendingFill} />
      </pattern>
      <pattern {...pattern} id={patternId(id, 'cancelled')}>
        {ground}
        <line x1={0} x2={SIZE} y1={SIZE / 2} y2={SIZE / 2} strokeWidth={1.5} className={classes.cancelled} />
      </pattern>
    </defs>
  );
}

/** Lines of the chart in drawing order: p95 first, so that the dot of an equal p50 is visible on its square. */
const LINES = [
  { name: 'p95', msOf: ({ p95_ms }: StatisticsBucket) => p95_ms, description: 'p95: 95 % are faster' },
  { name: 'p50', msOf: ({ p50_ms }: StatisticsBucket) => p50_ms, description: 'p50: half are faster' },
] as const;

type LineName = (typeof LINES)[number]['name'];

/** Response times: a solid line with dots for p50, a dashed one with squares for p95. */
export function LatencyChart({ buckets, onHour }: ChartProps) {
  const axis = createAxis(
    Math.max(0, ...buckets.flatMap(({ p50_ms, p95_ms }) => [p50_ms ?? 0, p95_ms ?? 0])),
  );
  return (
    <HourChart
      title="Response time of the endpoint"
      buckets={buckets}
      axis={axis}
      formatTick={formatDuration}
      describeHour={formatHourLatency}
      onHour={onHour}
      legend={<LatencyLegend />}
    >
      {(plot) =>
        LINES.map(({ name, msOf }) => <Line key={name} name={name} values={buckets.map(msOf)} plot={plot} />)
      }
    </HourChart>
  );
}

function Line({ name, values, plot }: { name: LineName; values: (number | null)[]; plot: Plot }) {
  const xOf = (index: number) => plot.xOf(index) + plot.bandWidth / 2;
  const runs = splitAtGaps(values);
  return (
    <>
      {runs.map((run) => (
        <polyline
          key={run[0]?.index}
          className={classes[`${name}Line`]}
          points={run.map(({ index, value }) => `${xOf(index)},${plot.yOf(value)}`).join(' ')}
        />
      ))}
      {runs.flat().map(({ index, value }) => (
        <Mark key={index} name={name} x={xOf(index)} y={plot.yOf(value)} />
      ))}
    </>
  );
}

function Mark({ name, x, y }: { name: LineName; x: number; y: number }) {
  if (name === 'p50') return <circle cx={x} cy={y} r={2.5} className={classes.p50Mark} />;
  return <rect x={x - 3} y={y - 3} width={6} height={6} className={classes.p95Mark} />;
}

function LatencyLegend() {
  return (
    <ul className={classes.legend}>
      {LINES.toReversed().map(({ name, description }) => (
        <li key={name}>
          <svg width={22} height={10} aria-hidden>
            <line x1={0} x2={22} y1={5} y2={5} className={classes[`${name}Line`]} />
            <Mark name={name} x={11} y={5} />
          </svg>
          {description}
        </li>
      ))}
    </ul>
  );
}
