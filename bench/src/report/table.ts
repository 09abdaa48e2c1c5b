import type { Row, ScenarioResult } from '../bench.ts';
import type { Report } from './targets.ts';
import { formatStretchGoal, formatVerdict, targetsOf } from './targets.ts';

const HIDDEN = new Set(['bench']);

/** Returns the report for the terminal, with one table per scenario. */
export function textReport(report: Report): string {
  const { raw, machine, voided } = report;
  const lines = [
    `Node ${machine.node}, ${machine.cores} cores of ${machine.processor}, ${machine.system}`,
    `raw got, one process: ${Math.round(raw.ratePerSecond)} requests/s, ${Math.round(raw.cpuMicrosPerRequest)} us of CPU each, ` +
      `${raw.concurrency} at a time; afterwards ${Math.round(raw.afterRatePerSecond)} requests/s`,
  ];
  for (const scenario of report.scenarios)
    lines.push('', scenario.name, ...scenarioTable(scenario), ...(scenario.notes ?? []));
  const targets = targetsOf(report).map((target) => [
    target.figure,
    String(target.pass),
    formatStretchGoal(target),
    target.measured === null ? '-' : figureText(target.measured),
    // A quick run shows that the scenarios work, but its figures are not meaningful.
    report.isQuick ? '' : formatVerdict(target),
  ]);
  lines.push('', ...alignColumns([['figure', 'pass', 'stretch', 'measured', ''], ...targets]));
  if (voided.length > 0) lines.push('', 'VOID', ...voided.map((reason) => `  ${reason}`));
  return lines.join('\n');
}

function scenarioTable({ rows }: ScenarioResult): string[] {
  const names = [...new Set(rows.flatMap(({ figures }) => Object.keys(figures)))].filter(
    (name) => !HIDDEN.has(name),
  );
  const cells = [
    ['case', ...names, 'published', 'missing', 'repeated'],
    ...rows.map((row) => [row.case, ...names.map((name) => formatFigure(row, name)), ...ledgerCells(row)]),
  ];
  return alignColumns(cells);
}

function ledgerCells({ ledger }: Row): string[] {
  return [ledger.published, ledger.missing, ledger.repeated].map(String);
}

function formatFigure({ figures }: Row, name: string): string {
  const value = figures[name];
  return value === undefined || Number.isNaN(value) ? '-' : figureText(value);
}

export function figureText(value: number): string {
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function alignColumns(cells: readonly (readonly string[])[]): string[] {
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => (row[column] ?? '').length)),
  );
  return cells.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  );
}
