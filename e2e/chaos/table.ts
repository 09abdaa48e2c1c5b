import type { Row } from './strike.ts';

const COLUMNS: [title: string, read: (row: Row) => string | number][] = [
  ['queue', ({ backend }) => backend],
  ['fault', ({ fault }) => fault],
  ['events published', ({ published }) => published],
  ['calls refused', ({ refusedCalls }) => refusedCalls],
  ['deliveries', ({ expected }) => expected],
  ['delivered', ({ delivered }) => delivered],
  ['failed as told', ({ failed }) => failed],
  ['cancelled as told', ({ cancelled }) => cancelled],
  ['answered, not recorded', ({ unrecorded }) => unrecorded],
  ['missing', ({ missing }) => missing],
  ['repeated', ({ repeated }) => repeated],
  ['in flight at the kill', ({ inFlightAtKills }) => inFlightAtKills],
  ['longest stall', ({ longestWaitSeconds }) => `${longestWaitSeconds.toFixed(1)} s`],
  ['drained within', ({ drainedSeconds }) => `${drainedSeconds.toFixed(1)} s`],
];

/** The ledger of every fault, as a table of Markdown. */
export function ledgerTable(rows: readonly Row[]): string {
  const lines = [
    COLUMNS.map(([title]) => title),
    ...rows.map((row) => COLUMNS.map(([, read]) => String(read(row)))),
  ];
  const widths = COLUMNS.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  const written = lines.map(
    (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`,
  );
  written.splice(1, 0, `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`);
  return `${written.join('\n')}\n`;
}
