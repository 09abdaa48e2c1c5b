/** The upper end of an axis and where its lines are, from 0 on. */
export interface Axis {
  max: number;
  ticks: number[];
}

const STEPS = [1, 2, 5, 10];
const LINES_WANTED = 4;

/** Round numbers from 0 to at least the highest value, in few steps; whole ones only. */
export function axisOf(highest: number): Axis {
  const target = Math.max(1, highest) / LINES_WANTED;
  const magnitude = 10 ** Math.floor(Math.log10(target));
  const step = Math.max(1, (STEPS.find((factor) => factor * magnitude >= target - 1e-9) ?? 10) * magnitude);
  const count = Math.max(1, Math.ceil(highest / step));
  const ticks = Array.from({ length: count + 1 }, (_, index) => Math.round(index * step));
  return { max: ticks.at(-1) ?? step, ticks };
}

/** The place of a value between two pixels. */
export function place(value: number, max: number, fromPx: number, toPx: number): number {
  return fromPx + (value / max) * (toPx - fromPx);
}

/** The pieces of a line where there are values; an hour without one interrupts it. */
export function runsOf<T>(points: readonly (T | null)[]): { index: number; value: T }[][] {
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
  /** Counts that lie below it. */
  below: number;
}

/** One bar: what there is, on top of each other in the order given. */
export function stackOf<Name extends string>(counts: readonly (readonly [Name, number])[]): Slice<Name>[] {
  let below = 0;
  const slices: Slice<Name>[] = [];
  for (const [name, count] of counts) {
    if (count === 0) continue;
    slices.push({ name, count, below });
    below += count;
  }
  return slices;
}
