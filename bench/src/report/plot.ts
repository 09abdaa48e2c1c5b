/** A line of a plot: points in ascending order of x. */
export interface Series {
  name: string;
  points: { x: number; y: number }[];
}

/** A bar of a plot, with its label below it and a note above it. */
export interface Bar {
  label: string;
  value: number;
  note: string;
}

/** Names of the axes. */
interface Axes {
  x: string;
  y: string;
}

const WIDTH = 720;
const HEIGHT = 400;
const LEFT = 70;
const RIGHT = 160;
const TOP = 40;
const BOTTOM = 60;
const TICKS = 5;
const TICK_SHARES = Array.from({ length: TICKS + 1 }, (_, index) => index / TICKS);
const GROUND_Y = HEIGHT - BOTTOM;

/** Classes of the series, in their order. */
const SERIES = ['one', 'other'];

/**
 * Follows the reader's preference for dark or light; each colour is legible on its own background. Texts have an outline
 * in the colour of the ground, because grid lines cross them.
 */
const STYLE = `
.text { paint-order: stroke; stroke-width: 4px }
.ground { fill: #ffffff } .text { fill: #222222; stroke: #ffffff } .grid { stroke: #dddddd }
.one { color: #1f5fa8 } .other { color: #b5541c }
@media (prefers-color-scheme: dark) {
.ground { fill: #16181c } .text { fill: #e6e6e6; stroke: #16181c } .grid { stroke: #3a3d42 }
.one { color: #6fb1f5 } .other { color: #f0a06a }
}`;

/** Draws a line plot of at most two series as SVG. Both axes begin at 0. */
export function linePlot(title: string, axes: Axes, series: readonly Series[]): string {
  const points = series.flatMap((line) => line.points);
  const xMax = niceMax(Math.max(...points.map(({ x }) => x), 1));
  const yAt = yScale(points.map(({ y }) => y));
  const xAt = (x: number) => LEFT + (x / xMax) * (WIDTH - LEFT - RIGHT);
  return drawPlot(title, axes, yAt, [
    ...TICK_SHARES.map((share) => text(xAt(share * xMax), GROUND_Y + 18, label(share * xMax), 'middle')),
    ...series.flatMap((line, index) => [
      ...drawLine(line, SERIES[index] as string, xAt, yAt.at),
      ...legendEntry(index, line.name),
    ]),
  ]);
}

const BAR_SHARE = 0.5;

/** Draws a bar per case as SVG, and a reference as a horizontal line. The y axis begins at 0. */
export function barPlot(
  title: string,
  axes: Axes,
  { name, bars }: { name: string; bars: readonly Bar[] },
  reference: { name: string; value: number },
): string {
  const yAt = yScale([...bars.map(({ value }) => value), reference.value]);
  const slot = (WIDTH - LEFT - RIGHT) / bars.length;
  const referenceY = round(yAt.at(reference.value));
  return drawPlot(title, axes, yAt, [
    ...bars.flatMap(({ label: below, value, note }, index) => {
      const middle = LEFT + (index + 0.5) * slot;
      const top = round(yAt.at(value));
      return [
        `<rect class="one" x="${round(middle - (slot * BAR_SHARE) / 2)}" y="${top}" width="${round(slot * BAR_SHARE)}" height="${round(GROUND_Y - top)}" fill="currentColor"/>`,
        text(middle, top - 8, note, 'middle'),
        text(middle, GROUND_Y + 18, below, 'middle'),
      ];
    }),
    `<line class="other" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${referenceY}" y2="${referenceY}" stroke="currentColor" stroke-width="2"/>`,
    ...[name, reference.name].flatMap((entry, index) => legendEntry(index, entry)),
  ]);
}

interface YScale {
  max: number;
  at: (value: number) => number;
}

function yScale(values: readonly number[]): YScale {
  const max = niceMax(Math.max(...values, 1));
  return { max, at: (value) => GROUND_Y - (value / max) * (GROUND_Y - TOP) };
}

/** Draws the title, the grid and the names of the axes around the content. */
function drawPlot(title: string, axes: Axes, { max, at }: YScale, content: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" role="img" aria-labelledby="title">`,
    `<title id="title">${escapeXml(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" width="${WIDTH}" height="${HEIGHT}"/>`,
    text(LEFT, 18, title, 'start', ' font-weight="bold" font-size="14"'),
    ...TICK_SHARES.flatMap((share) => [
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(at(share * max))}" y2="${round(at(share * max))}"/>`,
      text(LEFT - 8, at(share * max) + 4, label(share * max), 'end'),
    ]),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, axes.x, 'middle'),
    text(LEFT, TOP - 6, axes.y, 'start'),
    ...content,
    '</svg>',
    '',
  ].join('\n');
}

function drawLine(
  { points }: Series,
  className: string,
  xAt: (x: number) => number,
  yAt: (y: number) => number,
): string[] {
  const path = points.map(({ x, y }) => `${round(xAt(x))},${round(yAt(y))}`).join(' ');
  return [
    `<polyline class="${className}" points="${path}" fill="none" stroke="currentColor" stroke-width="2"/>`,
    ...points.map(
      ({ x, y }) =>
        `<circle class="${className}" cx="${round(xAt(x))}" cy="${round(yAt(y))}" r="3.5" fill="currentColor"/>`,
    ),
  ];
}

function legendEntry(index: number, name: string): string[] {
  const y = TOP + 10 + index * 20;
  return [
    `<rect class="${SERIES[index]}" x="${WIDTH - RIGHT + 16}" y="${y - 9}" width="12" height="12" fill="currentColor"/>`,
    text(WIDTH - RIGHT + 34, y + 1, name, 'start'),
  ];
}

function text(x: number, y: number, content: string, anchor: string, more = ''): string {
  return `<text class="text" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}"${more}>${escapeXml(content)}</text>`;
}

/** Rounds up to 1, 2 or 5 times a power of ten. */
export function niceMax(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10;
  return step * power;
}

function label(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Math.round(value * 10) / 10);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escapeXml(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
