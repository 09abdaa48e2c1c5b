import { expect, test } from '@jest/globals';
import { trialPicture } from '../src/simulate/picture.ts';
import { hpaSettings, kedaSettings, Scaler } from '../src/simulate/scaler.ts';
import { TRIALS, type Trial } from '../src/simulate/trials.ts';

const quiet = { oldestSeconds: 0, jobs: 0, cpuPercent: 10 };

test('the manifests for KEDA and for the HorizontalPodAutoscaler have the same settings', () => {
  expect(hpaSettings()).toEqual(kedaSettings());
});

test('the scaler adds pods as fast as the policies permit, by the largest of the three metrics', () => {
  const scaler = new Scaler(kedaSettings());
  expect(scaler.decide(0, 2, 2, quiet)).toBe(2);
  // Twice the age asks for twice the pods, 9,000 jobs for nine: two more or twice as many within 30 s.
  const waiting = { oldestSeconds: 30, jobs: 9_000, cpuPercent: 10 };
  expect(scaler.decide(15, 2, 2, waiting)).toBe(4);
  expect(scaler.decide(30, 4, 4, waiting)).toBe(4);
  expect(scaler.decide(46, 4, 4, waiting)).toBe(8);
  expect(scaler.decide(80, 8, 8, { ...quiet, cpuPercent: 100 })).toBe(11);
});

test('the scaler tolerates a deviation of a tenth, and requests no more pods while the starting ones suffice', () => {
  const scaler = new Scaler(kedaSettings());
  expect(scaler.decide(0, 4, 4, { oldestSeconds: 16, jobs: 4_300, cpuPercent: 80 })).toBe(4);
  expect(scaler.decide(15, 4, 2, { ...quiet, cpuPercent: 140 })).toBe(4);
});

test('the scaler removes a quarter of the pods per minute once no higher number was requested for ten minutes', () => {
  const scaler = new Scaler(kedaSettings());
  const pods = (atSeconds: number, now: number) => scaler.decide(atSeconds, now, now, quiet);
  expect(scaler.decide(0, 8, 8, { ...quiet, jobs: 8_000 })).toBe(8);
  expect(pods(590, 8)).toBe(8);
  expect(pods(605, 8)).toBe(6);
  expect(pods(620, 6)).toBe(6);
  expect(pods(670, 6)).toBe(4);
});

test('the picture of a trial of the scaler has a title and a description, and colours for dark pages', () => {
  const [trial] = TRIALS as [Trial];
  const moments = [1, 2].map((minute) => ({
    ...{ minute, pods: 2 * minute, oldestSeconds: 10 * minute, jobs: 0, deferred: 0, cpuPercent: 1 },
  }));
  const svg = trialPicture(trial, moments, moments);
  expect(svg).toContain(`<title id="title">${trial.title}</title>`);
  expect(svg).toContain('KEDA: 2 dispatchers, 4 at most, 4 at the end; the oldest waited 20 s at most.');
  expect(svg).toContain('prefers-color-scheme: dark');
});
