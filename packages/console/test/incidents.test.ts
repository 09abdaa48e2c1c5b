import { expect, test } from '@jest/globals';
import {
  causeTitle,
  createAnnouncement,
  describeImpact,
  describeOtherCauses,
  formatFailureRate,
  formatMoreFailing,
  formatOpenCount,
  formatResendLabel,
} from '../src/wording/incidents.ts';

const COUNTS = { delivery_count: 126, failed_count: 120, pending_count: 6, run_count: 118 };

test.each([
  [{}, '126 deliveries of 118 runs: 120 have failed, 6 are being retried.'],
  [{ pending_count: 0, failed_count: 126 }, '126 deliveries of 118 runs: 126 have failed.'],
  [{ pending_count: 0, failed_count: 0 }, '126 deliveries of 118 runs: all have been delivered since.'],
  [
    { delivery_count: 1, run_count: 1, failed_count: 0, pending_count: 1 },
    '1 delivery of 1 run: 1 is being retried.',
  ],
  [
    { delivery_count: 1, run_count: 1, failed_count: 1, pending_count: 0 },
    '1 delivery of 1 run: 1 has failed.',
  ],
  [{ delivery_count: 0 }, 'The log no longer contains its deliveries.'],
  [
    { delivery_count: 5_000, failed_count: 5_000, pending_count: 0, run_count: 4_000 },
    'more than 4,999 deliveries of 4,000 runs: more than 4,999 have failed.',
  ],
])('the affected deliveries of an incident are described: %j', (counts, text) => {
  expect(describeImpact({ ...COUNTS, ...counts })).toBe(text);
});

const cause = (title: string, delivery_count: number) => ({
  code: 'timeout' as const,
  title,
  advice: 'Do something.',
  http_status_code: '504',
  error_code: 'timeout',
  delivery_count,
  delivery_id: 'wdl_x',
  attempted_at: '1',
});

test('the main cause is the title of an incident, and the others are listed', () => {
  const causes = [cause('400 no_text', 97), cause('Too slow', 3)];
  expect(causeTitle({ causes })).toBe('400 no_text');
  expect(describeOtherCauses({ causes })).toBe('Also: Too slow (3 of the newest 100).');
  expect(describeOtherCauses({ causes: [cause('400 no_text', 9), cause('Too slow', 1)] })).toBe(
    'Also: Too slow (1).',
  );
  expect(describeOtherCauses({ causes: causes.slice(0, 1) })).toBe('');
  expect(causeTitle({ causes: [] })).toBe('Unknown cause');
});

test('the announcement for screen readers names failing and closed incidents, without times', () => {
  const slack = { subscription_name: 'Slack', causes: [cause('400 no_text', 9)] };
  expect(createAnnouncement([slack], [{ subscription_name: 'Pager', causes: [] }])).toBe(
    'Slack is failing: 400 no_text. Incident of Pager closed.',
  );
  expect(createAnnouncement([], [])).toBe('');
});

test.each([
  [126, 'Resend these 126'],
  [1, 'Resend this one'],
  [5_000, 'Resend all that failed'],
])('the button offers to resend %d failed deliveries', (failed_count, text) => {
  expect(formatResendLabel({ failed_count })).toBe(text);
});

test.each([
  [0, 0, 'no deliveries'],
  [1_204, 0, '1,204, none failed'],
  [1_000, 24, '1,000, 2.4 % failed'],
  [100, 2, '100, 2 % failed'],
  [100, 100, '100, 100 % failed'],
  [10_000, 9_999, '10,000, 99 % failed'],
  [10_000, 1, '10,000, under 0.1 % failed'],
])('the rate describes %d deliveries of which %d failed', (delivery_count, failed_count, text) => {
  expect(formatFailureRate({ delivery_count, failed_count })).toBe(text);
});

test.each([
  [1, '1 open incident', '1 more failing webhook'],
  [14, '14 open incidents', '14 more failing webhooks'],
])('%d open incidents are counted in singular or plural', (count, open, more) => {
  expect([formatOpenCount(count), formatMoreFailing(count)]).toEqual([open, more]);
});
