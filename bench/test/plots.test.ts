import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { linePlot, niceMax } from '../src/report/plot.ts';
import { plotsOf } from '../src/report/plots.ts';
import { report, scenario } from './report-fixture.ts';

const latency = scenario('latency', {
  a: { ratePerSecond: 100, p50Ms: 2, p99Ms: 9 },
  b: { ratePerSecond: 900, p50Ms: 5, p99Ms: 40 },
});
const fanOut = scenario('fan-out', {
  '1 event, 1 subscription': { ratePerSecond: 5_550 },
  '1 event, 10 subscriptions': { ratePerSecond: 4_440 },
  '1 event, 1000 subscriptions': { ratePerSecond: 3_330 },
});

test('the latencies of a run are plotted against load', () => {
  const plots = plotsOf(report([latency]));
  expect(Object.keys(plots)).toEqual(['latency.svg']);
  expect(plots['latency.svg']?.match(/<polyline/g)).toHaveLength(2);
});

test('deliveries per second are plotted by webhooks per event, with the rate of raw got as a line', () => {
  const plot = plotsOf(report([fanOut]))['fan-out.svg'] ?? '';
  const bars = [...plot.matchAll(/<rect class="one" .*y="([\d.]+)" width="81.7" height="([\d.]+)"/g)];
  // The axis ends at 10,000 and is 300 high.
  expect(bars.map(([, , height]) => Number(height))).toEqual([166.5, 133.2, 99.9]);
  expect(bars.map(([, y, height]) => Number(y) + Number(height))).toEqual([340, 340, 340]);
  for (const text of ['1', '10', '1000', '5550, 1.50 of raw got', '3330, 0.90 of raw got'])
    expect(plot).toContain(`>${text}</text>`);
  // The line of raw got is at 3,700 per second.
  expect(plot).toMatch(/<line class="other" .*y1="229" y2="229"/);
});

test('a scenario with a single case is not plotted', () => {
  const single = { ...fanOut, rows: fanOut.rows.slice(0, 1) };
  expect(plotsOf(report([single]))).toEqual({});
});

test.each(['latency.svg', 'fan-out.svg'])('%s has an accessible title and colours for dark pages', (name) => {
  const plot = plotsOf(report([latency, fanOut]))[name] ?? '';
  expect(plot).toMatch(/^<svg [^>]*role="img" aria-labelledby="title">\n<title id="title">[^<]+<\/title>/);
  expect(plot).toContain('@media (prefers-color-scheme: dark)');
  expect(plot.replace(/<style>[\s\S]*<\/style>/, '')).not.toMatch(/#[0-9a-f]{6}/);
  expect(plot).toMatch(/<\/svg>\n$/);
});

test('docs/performance.md shows each picture that a run writes', () => {
  const page = readFileSync(new URL('../../docs/performance.md', import.meta.url), 'utf8');
  const shown = [...page.matchAll(/!\[[^\]]+\]\(performance\/([a-z-]+\.svg)\)/g)].map(([, name]) => name);
  const written = plotsOf(report([latency, { ...latency, name: 'postgres-queue' }, fanOut]));
  expect(shown.sort()).toEqual(Object.keys(written).sort());
});

test('a plot escapes its texts, and its axes end at a round number', () => {
  expect(linePlot('a < b', { x: 'x', y: 'y' }, [])).toContain('a &lt; b');
  expect([0.7, 1, 3, 7, 120].map(niceMax)).toEqual([1, 1, 5, 10, 200]);
});
