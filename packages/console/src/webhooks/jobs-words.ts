/** Up to this many are told by name. */
export const JOBS_NAMED_MAX = 2;

/** "All jobs", names for few, else "12 jobs". @param names by id; a job that is no more has none */
export function jobsWords(ids: readonly string[], names: ReadonlyMap<string, string>): string {
  if (ids.length === 0) return 'All jobs';
  if (ids.length > JOBS_NAMED_MAX) return `${ids.length.toLocaleString()} jobs`;
  return ids.map((id) => names.get(id) ?? `Job ${id}`).join(', ');
}
