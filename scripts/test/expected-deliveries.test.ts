import { describe, expect, test } from '@jest/globals';
import type { ReceivedDelivery } from '../src/deliveries.ts';
import { findMissingArrivals, findMissingInLog } from '../src/deliveries.ts';

const expected = [
  { runId: '7', jobName: 'Nightly build', eventType: 'job.run.started', rejections: 0 },
  { runId: '7', jobName: 'Nightly build', eventType: 'job.run.completed', rejections: 2 },
];

function arrival(eventType: string, status: number, rest: Partial<ReceivedDelivery> = {}): ReceivedDelivery {
  return {
    time: '2026-01-31T00:00:00.000Z',
    endpoint: 'http://127.0.0.1:3002/webhooks',
    verified: true,
    attempt: 1,
    eventId: 'wev_1',
    webhookId: 'wsu_1',
    jobName: 'Nightly build',
    runId: '7',
    runStatus: 'Success',
    eventType,
    status,
    ...rest,
  };
}

const started = arrival('job.run.started', 204);
const rejected = arrival('job.run.completed', 503);
const accepted = arrival('job.run.completed', 204);

describe('findMissingArrivals', () => {
  test.each([
    ['every delivery arrived', [started, rejected, rejected, accepted], []],
    ['an accepted delivery arrived again', [started, rejected, rejected, accepted, accepted], []],
    [
      'no delivery arrived',
      [],
      [
        'job.run.started of "Nightly build" did not arrive with a verified signature',
        'job.run.completed of "Nightly build" did not arrive with a verified signature',
      ],
    ],
    [
      'a signature was not verified',
      [{ ...started, verified: false }, rejected, rejected, accepted],
      ['job.run.started of "Nightly build" did not arrive with a verified signature'],
    ],
    [
      'a delivery belongs to another run',
      [{ ...started, runId: '8' }, rejected, rejected, accepted],
      ['job.run.started of "Nightly build" did not arrive with a verified signature'],
    ],
    [
      'a delivery was accepted too early',
      [started, rejected, accepted],
      ['job.run.completed of "Nightly build" was rejected once, not 2 times'],
    ],
    [
      'a delivery was never accepted',
      [started, rejected, rejected],
      ['job.run.completed of "Nightly build" was not sent again after it was rejected'],
    ],
  ])('returns the right problems when %s', (_, received, missing) => {
    expect(findMissingArrivals(expected, received)).toEqual(missing);
  });
});

describe('findMissingInLog', () => {
  const rows = [
    { run_id: '7', event_type: 'job.run.started', status: 'delivered', attempt_count: 1 },
    { run_id: '7', event_type: 'job.run.completed', status: 'delivered', attempt_count: 3 },
  ] as const;

  test.each([
    ['the log is complete', rows, []],
    ['a delivery is missing', [rows[1]], ['job.run.started of "Nightly build" is not in the deliveries log']],
    [
      'a delivery is pending',
      [rows[0], { ...rows[1], status: 'pending' }],
      ['job.run.completed of "Nightly build" is pending in the deliveries log'],
    ],
    [
      'a delivery has too few attempts',
      [rows[0], { ...rows[1], attempt_count: 2 }],
      ['job.run.completed of "Nightly build" has 2 of 3 attempts in the deliveries log'],
    ],
  ])('returns the right problems when %s', (_, logged, missing) => {
    expect(findMissingInLog(expected, logged)).toEqual(missing);
  });
});
