import { niceMax } from '../report/plot.ts';
import type { Trial, TrialSnapshot } from './trials.ts';

const WIDTH = 720;
const LEFT = 64;
const RIGHT = 20;
const TOP = 56;
const PANEL_HEIGHT = 130;
const PANEL_GAP = 40;
const BOTTOM = 44;
const TICKS = 5;

/** Follows the reader's preference for dark or light; each colour is legible on its own background. */
const STYLE = `
.ground { fill: #ffffff } .text { fill: #222222 } .grid { stroke: #dddddd } .cause { fill: #f3dfd2 }
.one { stroke: #1f5fa8 } .other { stroke: #b5541c; stroke-dasharray: 6 4 }
@media (prefers-color-scheme: dark) {
.ground { fill: #16181c } .text { fill: #e6e6e6 } .grid { stroke: #3a3d42 } .cause { fill: #43342b }
.one { stroke: #6fb1f5 } .other { stroke: #f0a06a }
}`;

interface Panel {
  title: string;
  read: (snapshot: TrialSnapshot) => number;
}

const PANELS: readonly Panel[] = [
  { title: 'dispatchers', read: ({ pods }) => pods },
  { title: 'age of the oldest that is due, seconds', read: ({ oldestSeconds }) => oldestSeconds },
  { title: 'deferred deliveries, thousands', read: ({ deferred }) => deferred / 1_000 },
];

/** Draws a trial with both scalers: pods and age over time, and deferred deliveries if there are any. */
export function trialPicture(
  trial: Trial,
  keda: readonly TrialSnapshot[],
  hpa: readonly TrialSnapshot[],
): string {
  const panels = PANELS.filter(
    ({ read }, index) => index < 2 || keda.some((snapshot) => Math.round(read(snapshot)) > 0),
  );
  const height = TOP + panels.length * (PANEL_HEIGHT + PANEL_GAP) - PANEL_GAP + BOTTOM;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12" role="img" aria-labelledby="title description">`,
    `<title id="title">${trial.title}</title>`,
    `<desc id="description">${describeTrial(trial, keda, hpa)}</desc>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" width="${WIDTH}" height="${height}"/>`,
    text(LEFT, 20, trial.title, 'start', ' font-weight="bold" font-size="14"'),
    ...legend(),
    ...panels.flatMap((panel, index) =>
      drawPanel(panel, trial, [keda, hpa], TOP + index * (PANEL_HEIGHT + PANEL_GAP)),
    ),
    text((LEFT + WIDTH - RIGHT) / 2, height - 8, 'minutes', 'middle'),
    '</svg>',
    '',
  ].join('\n');
}

function describeTrial(trial: Trial, keda: readonly TrialSnapshot[], hpa: readonly TrialSnapshot[]): string {
  const maxOf = (snapshots: readonly TrialSnapshot[], read: Panel['read']) =>
    Math.round(Math.max(...snapshots.map(read)));
  const describeScaler = ([name, snapshots]: [string, readonly TrialSnapshot[]]) =>
    `${name}: ${snapshots[0]?.pods} dispatchers, ${maxOf(snapshots, ({ pods }) => pods)} at most, ${snapshots.at(-1)?.pods} at the end; the oldest waited ${maxOf(snapshots, ({ oldestSeconds }) => oldestSeconds)} s at most.`;
  const both: [string, readonly TrialSnapshot[]][] = [
    ['KEDA', keda],
    ['HPA', hpa],
  ];
  return `From minute ${trial.fromMinute} to ${trial.toMinute}: ${trial.cause}. ${both.map(describeScaler).join(' ')}`;
}

function legend(): string[] {
  return ['KEDA, scraped every 15 s', 'HPA, every 30 s'].flatMap((name, index) => {
    const x = WIDTH - RIGHT - 350 + index * 210;
    const line = index === 0 ? 'one' : 'other';
    return [
      `<line class="${line}" x1="${x}" x2="${x + 26}" y1="36" y2="36" stroke-width="2"/>`,
      text(x + 32, 40, name, 'start'),
    ];
  });
}

function drawPanel(
  panel: Panel,
  trial: Trial,
  lines: readonly (readonly TrialSnapshot[])[],
  top: number,
): string[] {
  const bottom = top + PANEL_HEIGHT;
  const maxOf = niceMax(Math.max(1, ...lines.flat().map(panel.read)));
  const xAt = (minute: number) => round(LEFT + (minute / trial.minutes) * (WIDTH - LEFT - RIGHT));
  const yAt = (value: number) => round(bottom - (value / maxOf) * PANEL_HEIGHT);
  const shares = Array.from({ length: TICKS + 1 }, (_, index) => index / TICKS);
  const causeWidth = round(xAt(trial.toMinute) - xAt(trial.fromMinute));
  return [
    `<rect class="cause" x="${xAt(trial.fromMinute)}" y="${top}" width="${causeWidth}" height="${PANEL_HEIGHT}"/>`,
    text(LEFT, top - 8, panel.title, 'start'),
    ...shares.flatMap((share) => [
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${yAt(share * maxOf)}" y2="${yAt(share * maxOf)}"/>`,
      text(LEFT - 8, yAt(share * maxOf) + 4, label(share * maxOf), 'end'),
      text(xAt(share * trial.minutes), bottom + 16, label(share * trial.minutes), 'middle'),
    ]),
    ...lines.map((snapshots, index) => {
      const points = steps(snapshots, panel.read).map(([minute, value]) => `${xAt(minute)},${yAt(value)}`);
      return `<polyline class="${index === 0 ? 'one' : 'other'}" points="${points.join(' ')}" fill="none" stroke-width="2"/>`;
    }),
  ];
}

/** Omits points whose neighbours have the same value. */
function steps(snapshots: readonly TrialSnapshot[], read: Panel['read']): [number, number][] {
  const points = snapshots.map((snapshot): [number, number] => [
    snapshot.minute,
    Math.round(read(snapshot) * 10) / 10,
  ]);
  return points.filter(
    ([, value], index) => value !== points[index - 1]?.[1] || value !== points[index + 1]?.[1],
  );
}

function label(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function text(x: number, y: number, content: string, anchor: string, more = ''): string {
  return `<text class="text" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}"${more}>${content}</text>`;
}
