import { expect, test } from '@jest/globals';
import { kedaSettings } from '../src/simulate/scaler.ts';
import { readMeasured, timesOf } from '../src/simulate/times.ts';
import { countChanges, runTrial, TRIALS, type Trial, WAVES } from '../src/simulate/trials.ts';

const times = timesOf(readMeasured());

function runTrialWith(trial: Trial, { windowSeconds }: { windowSeconds?: number } = {}) {
  const settings = kedaSettings();
  if (windowSeconds !== undefined) {
    settings.behavior.scaleDown.stabilizationWindowSeconds = windowSeconds;
  }
  return runTrial({ times, trial, settings, scrapeIntervalMs: 15_000 });
}

test.each(TRIALS)('in trial $name, pods rise once and fall once, and all due work is done', (trial) => {
  const moments = runTrialWith(trial);
  expect(countChanges(moments)).toEqual({ ups: 1, downs: 1 });
  expect(moments.at(-1)?.pods).toBe(kedaSettings().min);
  expect(moments.at(-1)?.deferred).toBeLessThan(trial.ratePerSecond);
  expect(moments.at(-1)?.oldestSeconds).toBeLessThan(1);
});

test('waves of work scale the pods up once, and would do so each time without a stabilization window', () => {
  expect(countChanges(runTrialWith(WAVES))).toEqual({ ups: 1, downs: 1 });
  expect(countChanges(runTrialWith(WAVES, { windowSeconds: 0 })).ups).toBeGreaterThan(2);
});
