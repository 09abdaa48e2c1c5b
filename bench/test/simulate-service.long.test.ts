import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { readDocument } from '../src/report/document.ts';
import { calibrate, simulateCase } from '../src/simulate/calibrate.ts';
import { readPrices } from '../src/simulate/cost.ts';
import { fillMarkers, scalingParts } from '../src/simulate/tables.ts';
import { readMeasured, timesOf } from '../src/simulate/times.ts';

const measured = readMeasured();
const times = timesOf(measured);
const page = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

test('the tables of docs/scaling.md are those that measured.json and prices.json of bench/simulate result in', () => {
  const scaling = page('scaling.md');
  expect(fillMarkers(scaling, scalingParts(measured, readPrices()))).toBe(scaling);
});

test('the simulation predicts the rate of two dispatchers on the machine of the benchmark from its CPU costs', () => {
  const name = 'max: 2 dispatchers';
  const rows = readDocument(page('performance.md'));
  const bench = rows.max?.['2 dispatchers']?.ratePerSecond as number;
  // The page may be from another machine than the times for plans.
  expect(Math.abs(simulateCase(calibrate(times, rows), name).ratePerSecond / bench - 1)).toBeLessThan(0.2);
});
