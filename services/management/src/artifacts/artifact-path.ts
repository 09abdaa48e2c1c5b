/** The file whose models are read. */
export const RUN_RESULTS = 'run_results.json';

/** Largest number of a step. */
export const STEP_MAX = 1_000;

const TEXT_EXTENSIONS = new Set(['txt', 'log', 'sql', 'csv', 'md', 'yml', 'yaml']);

/**
 * Returns the type under which a file is served. It never comes from the uploader and is none that browsers render or
 * execute: artifacts have the origin of the console.
 */
export function contentTypeOf(path: string): string {
  const extension = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? '';
  if (extension === 'json') return 'application/json';
  return TEXT_EXTENSIONS.has(extension) ? 'text/plain; charset=utf-8' : 'application/octet-stream';
}
