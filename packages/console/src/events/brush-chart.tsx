import { useElementSize } from '@mantine/hooks';
import { type KeyboardEvent, type PointerEvent, useId, useRef, useState } from 'react';
import type { Histogram } from '../api/types.ts';
import { OutcomeBar, OutcomeLegend, OutcomePatterns } from '../webhook/statistics/charts.tsx';
import chart from '../webhook/statistics/hour-chart.module.css';
import { createAxis, scaleToPixels } from '../webhook/statistics/scale.ts';
import { countOf, formatHourCounts, OUTCOMES, totalOf } from '../webhook/statistics/summary.ts';
import { type Brush, barLabel, brushKey, formatSpan, normalizeBrush, toTimeSpan } from './brush.ts';
import classes from './events.module.css';

const HEIGHT = 180;
const PLOT = { top: 8, bottom: HEIGHT - 22, left: 46, right: 8 };
const LABELS_TARGET = 6;
const LABEL_PX = 70;
const compactFormat = new Intl.NumberFormat(undefined, { notation: 'compact' });

interface BrushChartProps {
  histogram: Histogram;
  /** Called with a selected range, in milliseconds since the epoch. */
  onBrush: (fromMs: number, toMs: number) => void;
}

/**
 * Histogram of deliveries. The pointer selects a range by dragging. For the keyboard the chart is one tab stop: arrows, Home
 * and End move between bars, with Shift they select, Enter or Space zooms into the selection or the bar, Escape clears it.
 */
export function BrushChart({ histogram, onBrush }: BrushChartProps) {
  const { buckets, bucket_seconds } = histogram;
  const id = useId();
  const { ref, width } = useElementSize<HTMLDivElement>();
  const bands = useRef<(SVGRectElement | null)[]>([]);
  const [brush, setBrush] = useState<Brush | null>(null);
  const [isDrawing, setDrawing] = useState(false);
  const [selectedStop, setStop] = useState(buckets.length - 1);
  const tabStop = Math.min(selectedStop, buckets.length - 1);
  const bandWidth = Math.max(1, (width - PLOT.left - PLOT.right) / buckets.length);
  const xOf = (index: number) => PLOT.left + index * bandWidth;
  const axis = createAxis(Math.max(...buckets.map(totalOf)));
  const yOf = (value: number) => scaleToPixels(value, axis.max, PLOT.bottom, PLOT.top);
  const outcomes = OUTCOMES.filter((outcome) => countOf(histogram.totals, outcome) > 0);

  function applyBrush(chosen: Brush) {
    setBrush(null);
    const { fromMs, toMs } = toTimeSpan(buckets, bucket_seconds, chosen);
    onBrush(fromMs, toMs);
  }
  function handleKey(event: KeyboardEvent) {
    const key = brushKey(event, tabStop, buckets.length);
    if (key === null) return;
    event.preventDefault();
    if (key.kind === 'choose') return applyBrush(brush ?? { anchor: tabStop, head: tabStop });
    if (key.kind === 'clear') return setBrush(null);
    setBrush(key.kind === 'extend' ? { anchor: brush?.anchor ?? tabStop, head: key.to } : null);
    setStop(key.to);
    bands.current[key.to]?.focus();
  }
  const indexAt = (event: PointerEvent<SVGSVGElement>) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    return Math.min(buckets.length - 1, Math.max(0, Math.floor((x - PLOT.left) / bandWidth)));
  };

  return (
    <figure className={chart.figure} aria-labelledby={id}>
      <figcaption className={chart.caption}>
        <span id={id} className={chart.title}>
          Deliveries over time (UTC)
        </span>
        <OutcomeLegend id={`${id}-legend`} outcomes={outcomes} />
      </figcaption>
      <div ref={ref} className={chart.frame} style={{ height: HEIGHT }}>
        {width > 0 && (
          // biome-ignore lint/a11y/useSemanticElements: SVG has no fieldset
          <svg
            role="group"
            aria-labelledby={id}
            className={classes.frame}
            width={width}
            height={HEIGHT}
            onKeyDown={handleKey}
            onPointerDown={(event) => {
              if (event.button !== 0) return;
              event.currentTarget.setPointerCapture(event.pointerId);
              setBrush({ anchor: indexAt(event), head: indexAt(event) });
              setDrawing(true);
            }}
            onPointerMove={(event) => {
              if (isDrawing && brush !== null) setBrush({ ...brush, head: indexAt(event) });
            }}
            onPointerUp={() => {
              setDrawing(false);
              if (isDrawing && brush !== null) applyBrush(brush);
            }}
            onPointerCancel={() => {
              setDrawing(false);
              setBrush(null);
            }}
          >
            <OutcomePatterns id={id} />
            <g aria-hidden>
              {axis.ticks.map((tick) => (
                <g key={tick}>
                  <line
                    className={chart.gridLine}
                    x1={PLOT.left}
                    x2={width - PLOT.right}
                    y1={yOf(tick)}
                    y2={yOf(tick)}
                  />
                  <text
                    className={chart.tick}
                    x={PLOT.left - 6}
                    y={yOf(tick)}
                    textAnchor="end"
                    dominantBaseline="middle"
                  >
                    {compactFormat.format(tick)}
                  </text>
                </g>
              ))}
              <Labels histogram={histogram} xOf={xOf} width={width} />
              <Uncounted histogram={histogram} xOf={xOf} />
              {buckets.map((bucket, index) => (
                <OutcomeBar
                  key={bucket.start}
                  id={id}
                  bucket={bucket}
                  x={xOf(index)}
                  bandWidth={bandWidth}
                  plot={{ bottom: PLOT.bottom, yOf }}
                />
              ))}
            </g>
            {buckets.map((bucket, index) => {
              const { fromMs, toMs } = toTimeSpan(buckets, bucket_seconds, { anchor: index, head: index });
              return (
                // biome-ignore lint/a11y/useSemanticElements: SVG has no buttons; the chart handles the keys
                <rect
                  // biome-ignore lint/suspicious/noArrayIndexKey: a bar keeps the focus when the range moves
                  key={index}
                  ref={(element) => {
                    bands.current[index] = element;
                  }}
                  className={chart.band}
                  x={xOf(index)}
                  y={PLOT.top}
                  width={bandWidth}
                  height={PLOT.bottom - PLOT.top}
                  role="button"
                  tabIndex={index === tabStop ? 0 : -1}
                  aria-label={`${formatSpan(fromMs, toMs)}: ${formatHourCounts(bucket)}`}
                  onFocus={() => setStop(index)}
                />
              );
            })}
            {brush !== null && <Selection brush={brush} xOf={xOf} bandWidth={bandWidth} />}
          </svg>
        )}
      </div>
      <BarDescription
        histogram={histogram}
        brush={brush ?? { anchor: tabStop, head: tabStop }}
        isDrawn={brush !== null}
      />
    </figure>
  );
}

/** Describes the selection, or the bar that is the tab stop. */
function BarDescription({
  histogram,
  brush,
  isDrawn,
}: {
  histogram: Histogram;
  brush: Brush;
  isDrawn: boolean;
}) {
  const { buckets, bucket_seconds } = histogram;
  const { first, last } = normalizeBrush(brush);
  const { fromMs, toMs } = toTimeSpan(buckets, bucket_seconds, brush);
  const sums = { delivered_count: 0, failed_count: 0, pending_count: 0, cancelled_count: 0 };
  for (const bucket of buckets.slice(first, last + 1))
    for (const outcome of OUTCOMES) sums[`${outcome}_count`] += bucket[`${outcome}_count`];
  return (
    <div style={{ fontSize: 'var(--mantine-font-size-xs)' }} aria-live={isDrawn ? 'polite' : 'off'}>
      {formatSpan(fromMs, toMs)}: {formatHourCounts(sums)}.{' '}
      {isDrawn
        ? 'Press Enter to zoom in, Escape to clear.'
        : 'Drag over the bars, or use Shift and the arrow keys, to zoom in.'}
    </div>
  );
}

function Selection({
  brush,
  xOf,
  bandWidth,
}: {
  brush: Brush;
  xOf: (index: number) => number;
  bandWidth: number;
}) {
  const { first, last } = normalizeBrush(brush);
  return (
    <rect
      className={classes.selection}
      x={xOf(first)}
      y={PLOT.top}
      width={(last - first + 1) * bandWidth}
      height={PLOT.bottom - PLOT.top}
      aria-hidden
    />
  );
}

interface PartProps {
  histogram: Histogram;
  xOf: (index: number) => number;
}

function Labels({ histogram, xOf, width }: PartProps & { width: number }) {
  const { buckets, bucket_seconds } = histogram;
  const labelCount = Math.max(1, Math.min(LABELS_TARGET, Math.floor((width - PLOT.left) / LABEL_PX)));
  const step = Math.max(1, Math.ceil(buckets.length / labelCount));
  return buckets.map(
    ({ start }, index) =>
      index % step === 0 && (
        <text key={start} className={chart.tick} x={xOf(index)} y={HEIGHT - 5}>
          {barLabel(Math.floor(Number(start) / 1_000), buckets.length * bucket_seconds * 1_000)}
        </text>
      ),
  );
}

/** Marks the buckets before `counted_since`, which are not counted: too many rows would be read. */
function Uncounted({ histogram, xOf }: PartProps) {
  const { buckets, counted_since } = histogram;
  if (counted_since === null) return null;
  const count = buckets.filter(({ start }) => BigInt(start) < BigInt(counted_since)).length;
  return (
    <rect
      className={classes.uncounted}
      x={xOf(0)}
      y={PLOT.top}
      width={xOf(count) - xOf(0)}
      height={PLOT.bottom - PLOT.top}
    />
  );
}
