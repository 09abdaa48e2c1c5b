/**
 * Runs the parts one after the other. A part that fails stops no other part.
 * @returns the results by name
 * @throws AggregateError with the error of every part that failed, once all parts have ended
 */
export async function runEach<Results extends object>(
  parts: {
    [Name in keyof Results]: () => Promise<Results[Name]>;
  },
): Promise<Results> {
  const results: Partial<Results> = {};
  const failed: string[] = [];
  const errors: unknown[] = [];
  for (const name of Object.keys(parts) as (keyof Results & string)[]) {
    try {
      results[name] = await parts[name]();
    } catch (error) {
      failed.push(name);
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, `Failed: ${failed.join(', ')}.`);
  return results as Results;
}
