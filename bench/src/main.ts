import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Alternatives } from './bench.ts';
import type { BenchOptions } from './options.ts';
import { fillDocument } from './report/document.ts';
import { plotsOf } from './report/plots.ts';
import { textReport } from './report/table.ts';
import type { Report } from './report/targets.ts';
import { createProgress, run } from './run.ts';
import { scenarios } from './scenarios/index.ts';

const RESULTS = new URL('../results/', import.meta.url);
const DOCUMENT = new URL('../../docs/performance.md', import.meta.url);
const PLOTS = new URL('../../docs/performance/', import.meta.url);

/**
 * Resolves with the exit code: 0, or 1 if the run is void because a ledger does not balance or a figure is impossible.
 */
export async function bench(
  options: BenchOptions,
  signal: AbortSignal,
  alternatives: Alternatives,
): Promise<number> {
  const report = await run(options, createProgress(process.stderr), signal, scenarios, alternatives);
  writeResults(report);
  console.log(textReport(report));
  if (options.writesDocs) writeDocs(report);
  return report.voided.length === 0 ? 0 : 1;
}

/** Writes the document only if the run is valid. */
function writeDocs(report: Report): void {
  if (report.voided.length > 0 || report.isQuick) {
    console.log('docs/performance.md stays as it is: this run measured nothing that counts.');
    return;
  }
  writeFileSync(DOCUMENT, fillDocument(readFileSync(DOCUMENT, 'utf8'), report));
  mkdirSync(PLOTS, { recursive: true });
  for (const [name, svg] of Object.entries(plotsOf(report))) writeFileSync(new URL(name, PLOTS), svg);
  console.log(`written: ${fileURLToPath(DOCUMENT)}`);
}

function writeResults(report: Report): void {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(new URL('latest.json', RESULTS), `${JSON.stringify(report, null, 2)}\n`);
  console.log(`written: ${fileURLToPath(new URL('latest.json', RESULTS))}\n`);
}

export { parseOptions, UsageError } from './options.ts';
