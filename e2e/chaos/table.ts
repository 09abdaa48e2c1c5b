import type { Row } from './run-fault.ts';

type Columns = readonly (readonly [title: string, read: (row: Row) => string | number])[];

const COLUMNS: Columns = [
  ['queue', ({ backend }) => backend],
  ['fault', ({ fault }) => fault],
  ['events published', ({ published }) => published],
  ['calls rejected', ({ failedCalls }) => failedCalls],
  ['deliveries', ({ expected }) => expected],
  ['delivered', ({ delivered }) => delivered],
  ['failed in the log', ({ failed }) => failed],
  ['cancelled in the log', ({ cancelled }) => cancelled],
  ['delivered, not recorded', ({ unrecorded }) => unrecorded],
  ['missing', ({ missing }) => missing],
  ['repeated', ({ repeated }) => repeated],
  ['in flight at the kill', ({ inFlightAtKills }) => inFlightAtKills],
  ['longest stall', ({ longestWaitSeconds }) => `${longestWaitSeconds.toFixed(1)} s`],
  [
    'healthy within',
    ({ healthySeconds }) => (healthySeconds === undefined ? '' : `${healthySeconds.toFixed(1)} s`),
  ],
  ['drained within', ({ drainedSeconds }) => `${drainedSeconds.toFixed(1)} s`],
];

const FAILOVER_COLUMNS: Columns = [
  ['failover', ({ fault }) => fault],
  ['accepted', ({ published }) => published],
  ['calls rejected', ({ failedCalls }) => failedCalls],
  ['deliveries', ({ expected }) => expected],
  ['delivered', ({ delivered }) => delivered],
  ['failed in the log', ({ failed }) => failed],
  ['cancelled in the log', ({ cancelled }) => cancelled],
  ['missing', ({ missing }) => missing],
  ['lost as documented, of these delivered', ({ lost, lostAndDelivered }) => `${lost}, ${lostAndDelivered}`],
  ['repeated', ({ repeated }) => repeated],
  ['repeats permitted', ({ inFlightAtKills }) => inFlightAtKills],
  [
    'resumed after',
    ({ resumedSeconds }) => (resumedSeconds === null ? '' : `${resumedSeconds.toFixed(1)} s`),
  ],
  [
    'healthy within',
    ({ healthySeconds }) => (healthySeconds === undefined ? '' : `${healthySeconds.toFixed(1)} s`),
  ],
  ['drained within', ({ drainedSeconds }) => `${drainedSeconds.toFixed(1)} s`],
];

/** Formats the ledgers of faults as a table of Markdown. */
export const formatLedgerTable = (rows: readonly Row[]) => formatTable(rows, COLUMNS);

/** Formats the ledgers of failovers, with lost events and the time until deliveries resumed. */
export const formatFailoverTable = (rows: readonly Row[]) => formatTable(rows, FAILOVER_COLUMNS);

/** Sums and maxima of a ledger in one line, for docs/proofs.md. */
export function formatLedgerSummary(rows: readonly Row[]): string {
  const sum = (read: (row: Row) => number) => rows.reduce((total, row) => total + read(row), 0);
  const drained = Math.max(0, ...rows.map(({ drainedSeconds }) => drainedSeconds));
  return (
    `${rows.length} ledgers, ${sum(({ expected }) => expected)} deliveries, ${sum(({ missing }) => missing)} missing, ` +
    `${sum(({ repeated }) => repeated)} repeated, drained within ${drained.toFixed(1)} s`
  );
}

function formatTable(rows: readonly Row[], columns: Columns): string {
  const lines = [
    columns.map(([title]) => title),
    ...rows.map((row) => columns.map(([, read]) => String(read(row)))),
  ];
  const widths = columns.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  const tableLines = lines.map(
    (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`,
  );
  tableLines.splice(1, 0, `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`);
  return `${tableLines.join('\n')}\n`;
}
