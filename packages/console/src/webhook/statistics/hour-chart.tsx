import { useElementSize } from '@mantine/hooks';
import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  type Ref,
  useDeferredValue,
  useId,
  useRef,
  useState,
} from 'react';
import type { StatisticsBucket } from '../../api/types.ts';
import classes from './hour-chart.module.css';
import { type Axis, scaleToPixels } from './scale.ts';
import { formatDayAndHour, formatHour, formatHourSpan } from './summary.ts';

const HEIGHT = 168;
const PLOT = { top: 8, bottom: HEIGHT - 22, left: 46, rightGap: 8 };
/** Interval of labels for one day. A longer range has one label per day. */
const HOURS_PER_LABEL = 6;
const HOURS_OF_A_DAY = 24;

/** Maps values to pixels. */
export interface Plot {
  /** Returns the left edge of an hour's band. */
  xOf(index: number): number;
  bandWidth: number;
  yOf(value: number): number;
  bottom: number;
}

interface HourChartProps {
  title: string;
  buckets: readonly StatisticsBucket[];
  axis: Axis;
  formatTick: (value: number) => string;
  /** Describes one hour, for the tooltip and for screen readers. */
  describeHour: (bucket: StatisticsBucket) => string;
  /** Called with the start of the selected hour, in microseconds since the epoch. */
  onHour: (hourStart: string) => void;
  legend: ReactNode;
  children: (plot: Plot) => ReactNode;
}

/**
 * Frame of a chart of hours. The pointer shows the values of an hour. For the keyboard the chart is one tab stop, and arrows,
 * Home and End move between hours. A click, Enter or Space selects an hour.
 */
export function HourChart({
  title,
  buckets,
  axis,
  formatTick,
  describeHour,
  onHour,
  legend,
  children,
}: HourChartProps) {
  const titleId = useId();
  const { ref, width: measured } = useElementSize<HTMLDivElement>();
  // The hours depend on a deferred width, so that React renders them in slices.
  const width = useDeferredValue(measured);
  const bands = useRef<(SVGRectElement | null)[]>([]);
  const [hovered, setHovered] = useState<number | null>(null);
  const [focused, setFocused] = useState<number | null>(null);
  const [tabStop, setStop] = useState(buckets.length - 1);
  const plot = createPlot(width, buckets.length, axis);
  const shown = hovered ?? focused;
  const shownBucket = shown === null ? undefined : buckets[shown];

  function handleKey(event: KeyboardEvent) {
    const chosen = buckets[tabStop];
    if ((event.key === 'Enter' || event.key === ' ') && chosen !== undefined) {
      event.preventDefault();
      return onHour(chosen.hour_start);
    }
    const target = findTarget(event.key, tabStop, buckets.length);
    if (target === null) return;
    event.preventDefault();
    setStop(target);
    bands.current[target]?.focus();
  }
  function handlePointer(event: PointerEvent<SVGSVGElement>) {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    const index = Math.floor((x - PLOT.left) / plot.bandWidth);
    setHovered(index >= 0 && index < buckets.length ? index : null);
  }

  return (
    <figure className={classes.figure} aria-labelledby={titleId}>
      <figcaption className={classes.caption}>
        <span id={titleId} className={classes.title}>
          {title}
        </span>
        {legend}
      </figcaption>
      <div ref={ref} className={classes.frame} style={{ height: HEIGHT }}>
        {width > 0 && (
          // biome-ignore lint/a11y/useSemanticElements: SVG has no fieldset
          <svg
            role="group"
            aria-labelledby={titleId}
            width={width}
            height={HEIGHT}
            onKeyDown={handleKey}
            onPointerMove={handlePointer}
            onPointerDown={handlePointer}
            onPointerLeave={() => setHovered(null)}
          >
            <Grid axis={axis} plot={plot} width={width} formatTick={formatTick} />
            <HourLabels buckets={buckets} plot={plot} />
            <g aria-hidden>{children(plot)}</g>
            {buckets.map((bucket, index) => (
              <Band
                key={bucket.hour_start}
                ref={(element) => {
                  bands.current[index] = element;
                }}
                label={`${formatHourSpan(bucket.hour_start)}: ${describeHour(bucket)}`}
                x={plot.xOf(index)}
                width={plot.bandWidth}
                isShown={shown === index}
                isStop={index === tabStop}
                onFocus={() => {
                  setFocused(index);
                  setStop(index);
                }}
                onBlur={() => setFocused(null)}
                onClick={() => onHour(bucket.hour_start)}
              />
            ))}
          </svg>
        )}
        {shown !== null && shownBucket !== undefined && (
          <HourHint
            bucket={shownBucket}
            text={describeHour(shownBucket)}
            x={plot.xOf(shown) + plot.bandWidth / 2}
            width={width}
          />
        )}
      </div>
    </figure>
  );
}

interface BandProps {
  ref: Ref<SVGRectElement>;
  /** Text for screen readers when the band has the focus. */
  label: string;
  x: number;
  width: number;
  isShown: boolean;
  /** Whether the band is the tab stop of the chart. */
  isStop: boolean;
  onFocus: () => void;
  onBlur: () => void;
  onClick: () => void;
}

/** The full height of the plot above one hour, which receives clicks and the focus. */
function Band({ label, isShown, isStop, ...rest }: BandProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: SVG has no buttons; the chart handles the keys
    <rect
      {...rest}
      className={classes.band}
      data-shown={isShown}
      y={PLOT.top}
      height={PLOT.bottom - PLOT.top}
      role="button"
      tabIndex={isStop ? 0 : -1}
      aria-label={`${label}. Show them in the log`}
    />
  );
}

function createPlot(width: number, count: number, axis: Axis): Plot {
  const bandWidth = Math.max(1, (width - PLOT.left - PLOT.rightGap) / count);
  return {
    xOf: (index) => PLOT.left + index * bandWidth,
    bandWidth,
    yOf: (value) => scaleToPixels(value, axis.max, PLOT.bottom, PLOT.top),
    bottom: PLOT.bottom,
  };
}

function findTarget(key: string, from: number, count: number): number | null {
  if (key === 'ArrowLeft') return Math.max(0, from - 1);
  if (key === 'ArrowRight') return Math.min(count - 1, from + 1);
  if (key === 'Home') return 0;
  return key === 'End' ? count - 1 : null;
}

function Grid({
  axis,
  plot,
  width,
  formatTick,
}: {
  axis: Axis;
  plot: Plot;
  width: number;
  formatTick: (value: number) => string;
}) {
  return (
    <g aria-hidden>
      {axis.ticks.map((tick) => (
        <g key={tick}>
          <line
            className={classes.gridLine}
            x1={PLOT.left}
            x2={width - PLOT.rightGap}
            y1={plot.yOf(tick)}
            y2={plot.yOf(tick)}
          />
          <text
            className={classes.tick}
            x={PLOT.left - 6}
            y={plot.yOf(tick)}
            textAnchor="end"
            dominantBaseline="middle"
          >
            {formatTick(tick)}
          </text>
        </g>
      ))}
    </g>
  );
}

function HourLabels({ buckets, plot }: { buckets: readonly StatisticsBucket[]; plot: Plot }) {
  const isLong = buckets.length > HOURS_OF_A_DAY;
  return (
    <g aria-hidden>
      {buckets.map(
        ({ hour_start }, index) =>
          index % (isLong ? HOURS_OF_A_DAY : HOURS_PER_LABEL) === 0 && (
            <text key={hour_start} className={classes.tick} x={plot.xOf(index)} y={HEIGHT - 5}>
              {isLong ? formatDayAndHour(hour_start) : formatHour(hour_start)}
            </text>
          ),
      )}
    </g>
  );
}

const HALF_PX = 95;

/** Tooltip with the values of an hour. Screen readers get the same text from the focused band. */
function HourHint({
  bucket,
  text,
  x,
  width,
}: {
  bucket: StatisticsBucket;
  text: string;
  x: number;
  width: number;
}) {
  const left = Math.min(Math.max(x - HALF_PX, 0), Math.max(0, width - 2 * HALF_PX));
  return (
    <div className={classes.hint} style={{ left, width: 2 * HALF_PX }} aria-hidden>
      <strong>{formatHourSpan(bucket.hour_start)}</strong>
      {text.split(', ').map((line) => (
        <span key={line}>{line}</span>
      ))}
    </div>
  );
}
