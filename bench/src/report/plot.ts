/** A line of a plot: points in ascending order of x. */
export interface Series {
  name: string;
  points: { x: number; y: number }[];
}

const WIDTH = 720;
const HEIGHT = 400;
const LEFT = 70;
const RIGHT = 160;
const TOP = 40;
const BOTTOM = 60;
const COLOURS = ['#1f5fa8', '#b5541c', '#2f7d32', '#7a3b9a'];
const TICKS = 5;

/** Draws a line plot as SVG, legible on light and dark pages. The y axis begins at 0. */
export function linePlot(title: string, axes: { x: string; y: string }, series: readonly Series[]): string {
  const points = series.flatMap((line) => line.points);
  const xMax = niceMax(Math.max(...points.map(({ x }) => x), 1));
  const yMax = niceMax(Math.max(...points.map(({ y }) => y), 1));
  const xAt = (x: number) => LEFT + (x / xMax) * (WIDTH - LEFT - RIGHT);
  const yAt = (y: number) => HEIGHT - BOTTOM - (y / yMax) * (HEIGHT - TOP - BOTTOM);
  const ticks = Array.from({ length: TICKS + 1 }, (_, index) => index / TICKS);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    text(LEFT, 22, title, 'start', 'font-weight="bold" font-size="14"'),
    ...ticks.flatMap((share) => [
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(yAt(share * yMax))}" y2="${round(yAt(share * yMax))}" stroke="#dddddd"/>`,
      text(LEFT - 8, yAt(share * yMax) + 4, label(share * yMax), 'end'),
      text(xAt(share * xMax), HEIGHT - BOTTOM + 18, label(share * xMax), 'middle'),
    ]),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, axes.x, 'middle'),
    text(LEFT, TOP - 6, axes.y, 'start'),
    ...series.flatMap((line, index) =>
      drawSeries(line, COLOURS[index % COLOURS.length] as string, index, { xAt, yAt }),
    ),
    '</svg>',
    '',
  ].join('\n');
}

function drawSeries(
  { name, points }: Series,
  colour: string,
  index: number,
  { xAt, yAt }: { xAt: (x: number) => number; yAt: (y: number) => number },
): string[] {
  const path = points.map(({ x, y }) => `${round(xAt(x))},${round(yAt(y))}`).join(' ');
  const legendY = TOP + 10 + index * 20;
  return [
    `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...points.map(
      ({ x, y }) => `<circle cx="${round(xAt(x))}" cy="${round(yAt(y))}" r="3.5" fill="${colour}"/>`,
    ),
    `<rect x="${WIDTH - RIGHT + 16}" y="${legendY - 9}" width="12" height="12" fill="${colour}"/>`,
    text(WIDTH - RIGHT + 34, legendY + 1, name, 'start'),
  ];
}

function text(x: number, y: number, content: string, anchor: string, more = ''): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" fill="#222222" ${more}>${escapeXml(content)}</text>`;
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
