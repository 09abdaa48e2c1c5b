/** Upper end of an axis, and the values of its grid lines, from 0. */
export interface Axis {
  max: number;
  ticks: number[];
}

const STEPS = [1, 2, 5, 10];
const LINES_TARGET = 4;

/** Returns round integers from 0 to at least the highest value, in at most five steps. */
export function createAxis(highest: number): Axis {
  const target = Math.max(1, highest) / LINES_TARGET;
  const magnitude = 10 ** Math.floor(Math.log10(target));
  const step = Math.max(1, (STEPS.find((factor) => factor * magnitude >= target - 1e-9) ?? 10) * magnitude);
  const count = Math.max(1, Math.ceil(highest / step));
  const ticks = Array.from({ length: count + 1 }, (_, index) => Math.round(index * step));
  return { max: ticks.at(-1) ?? step, ticks };
}

/** Maps a value linearly to a pixel between `fromPx` (0) and `toPx` (`max`). */
export function scaleToPixels(value: number, max: number, fromPx: number, toPx: number): number {
  return fromPx + (value / max) * (toPx - fromPx);
}

/** Splits a series at hours without a value. Each part is drawn as one line. */
export function splitAtGaps<T>(points: readonly (T | null)[]): { index: number; value: T }[][] {
  const runs: { index: number; value: T }[][] = [];
  points.forEach((value, index) => {
    if (value === null) return;
    const last = runs.at(-1);
    if (last?.at(-1)?.index === index - 1) last.push({ index, value });
    else runs.push([{ index, value }]);
  });
  return runs;
}

interface Slice<Name extends string> {
  name: Name;
  count: number;
  /** Sum of the counts below it. */
  offset: number;
}

/** Returns the slices of a stacked bar in input order, without empty ones. */
export function stackSlices<Name extends string>(
  counts: readonly (readonly [Name, number])[],
): Slice<Name>[] {
  let offset = 0;
  const slices: Slice<Name>[] = [];
  for (const [name, count] of counts) {
    if (count === 0) continue;
    slices.push({ name, count, offset });
    offset += count;
  }
  return slices;
}
