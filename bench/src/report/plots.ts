import type { Row } from '../bench.ts';
import { barPlot, linePlot } from './plot.ts';
import { figureText } from './table.ts';
import type { Report } from './targets.ts';

/** The files of docs/performance, by name. */
export type Plots = Record<string, string>;

/** Draws the scenarios of which the run has at least two cases. */
export function plotsOf(report: Report): Plots {
  const plots: Plots = {};
  const add = (file: string, scenario: string, figure: string, draw: (rows: readonly Row[]) => string) => {
    const rows = report.scenarios.find(({ name }) => name === scenario)?.rows ?? [];
    const measured = rows.filter(({ figures }) => figures[figure] !== undefined);
    if (measured.length > 1) plots[file] = draw(measured);
  };
  add('latency.svg', 'latency', 'p99Ms', (rows) => latencyPlot('Event to endpoint, queue on Redis', rows));
  add('latency-postgres-queue.svg', 'postgres-queue', 'p99Ms', (rows) =>
    latencyPlot('Event to endpoint, queue on PostgreSQL', rows),
  );
  add('fan-out.svg', 'fan-out', 'ratePerSecond', (rows) => fanOutPlot(rows, report.raw.ratePerSecond));
  return plots;
}

function latencyPlot(title: string, rows: readonly Row[]): string {
  const line = (name: string, figure: string) => ({
    name,
    points: rows
      .map(({ figures }) => ({ x: figures.ratePerSecond as number, y: figures[figure] as number }))
      .sort((a, b) => a.x - b.x),
  });
  return linePlot(title, { x: 'events per second', y: 'milliseconds' }, [
    line('p99', 'p99Ms'),
    line('p50', 'p50Ms'),
  ]);
}

function fanOutPlot(rows: readonly Row[], rawRate: number): string {
  return barPlot(
    'Deliveries per second by webhooks per event',
    { x: 'webhooks per event', y: 'deliveries per second' },
    {
      name: 'Runhook',
      bars: rows.map(({ case: name, figures }) => {
        const value = figures.ratePerSecond as number;
        return {
          label: /(\d+) subscription/.exec(name)?.[1] ?? name,
          value,
          note: `${figureText(value)}, ${figureText(value / rawRate)} of raw got`,
        };
      }),
    },
    { name: 'raw got', value: rawRate },
  );
}
