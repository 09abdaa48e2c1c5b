import type { StatisticsBucket } from '../../api/types.ts';
import { durationWords } from '../../words/time.ts';
import classes from './hour-chart.module.css';
import { HourChart, type Plot } from './hour-chart.tsx';
import { axisOf, runsOf } from './scale.ts';
import { hourLatencyWords } from './summary.ts';

/** The slower one is drawn first: where both are the same, the dot stays in sight on the square. */
const LINES = [
  { name: 'p95', msOf: ({ p95_ms }: StatisticsBucket) => p95_ms, what: 'p95: 95 % are faster' },
  { name: 'p50', msOf: ({ p50_ms }: StatisticsBucket) => p50_ms, what: 'p50: half are faster' },
] as const;

type LineName = (typeof LINES)[number]['name'];

/** How long the endpoint took: a full line with dots for p50, a dashed one with squares for p95. */
export function LatencyChart({ buckets }: { buckets: readonly StatisticsBucket[] }) {
  const axis = axisOf(Math.max(0, ...buckets.flatMap(({ p50_ms, p95_ms }) => [p50_ms ?? 0, p95_ms ?? 0])));
  return (
    <HourChart
      title="How long the endpoint took"
      buckets={buckets}
      axis={axis}
      tickWords={durationWords}
      hourWords={hourLatencyWords}
      legend={<Legend />}
    >
      {(plot) =>
        LINES.map(({ name, msOf }) => <Line key={name} name={name} values={buckets.map(msOf)} plot={plot} />)
      }
    </HourChart>
  );
}

function Line({ name, values, plot }: { name: LineName; values: (number | null)[]; plot: Plot }) {
  const xOf = (index: number) => plot.xOf(index) + plot.bandWidth / 2;
  const runs = runsOf(values);
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

function Legend() {
  return (
    <ul className={classes.legend}>
      {LINES.toReversed().map(({ name, what }) => (
        <li key={name}>
          <svg width={22} height={10} aria-hidden>
            <line x1={0} x2={22} y1={5} y2={5} className={classes[`${name}Line`]} />
            <Mark name={name} x={11} y={5} />
          </svg>
          {what}
        </li>
      ))}
    </ul>
  );
}
