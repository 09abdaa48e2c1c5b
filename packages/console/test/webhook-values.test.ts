import { expect, test } from '@jest/globals';
import type { Subscription } from '../src/api/types.ts';
import { describeMatchCount, describeRateLimit } from '../src/webhook-form/match-wording.ts';
import { summarizeOptions } from '../src/webhook-form/options-summary.ts';
import { checkTestFields, checkWebhook, toFieldProblems } from '../src/webhook-form/webhook-checks.ts';
import {
  hasSameDestination,
  hasSameFormat,
  NEW_WEBHOOK,
  toApiFields,
  toCopyValues,
  toFormValues,
  toTestFields,
} from '../src/webhook-form/webhook-values.ts';

const PLAIN = {
  name: 'Alerts',
  description: '',
  event_types: ['job.run.errored'],
  job_ids: [],
  client_url: 'https://example.com/hook',
  active: true,
} as unknown as Subscription;

const FULL = {
  ...PLAIN,
  client_url: 'https://events.pagerduty.com/v2/enqueue',
  format: 'pagerduty',
  format_options: { routing_key: '***' },
  filters: { run_statuses: ['20'], environment_ids: ['4'] },
  ordered: true,
  rate_limit: 0.5,
  labels: { team: 'data' },
  deactivate_on_410: true,
  headers: { 'X-Gate': '***' },
} as unknown as Subscription;

test('a webhook without options clears each of them when it is saved', () => {
  expect(toApiFields(toFormValues(PLAIN))).toMatchObject({
    format: null,
    format_options: null,
    filters: null,
    ordered: false,
    rate_limit: null,
    labels: null,
    deactivate_on_410: false,
  });
  expect(summarizeOptions(toFormValues(PLAIN))).toBe('');
});

test('the options of a webhook survive the form, with masks for stored values', () => {
  const values = toFormValues(FULL);
  expect(toApiFields(values)).toMatchObject({
    format: 'pagerduty',
    format_options: { routing_key: '***' },
    filters: { run_statuses: [20], environment_ids: [4] },
    ordered: true,
    rate_limit: 0.5,
    labels: { team: 'data' },
    deactivate_on_410: true,
  });
  expect(toApiFields({ ...values, formatOptions: { routing_key: ' new ' } }).format_options).toEqual({
    routing_key: 'new',
  });
  expect(toApiFields({ ...values, format: 'slack' }).format_options).toBeNull();
  expect(summarizeOptions(values)).toBe(
    'errored runs, 1 environment, in order, at most 0.5 per second, off after 410 Gone, 1 custom header, 1 label',
  );
});

test('a test of unsaved values sends no masks', () => {
  const values = { ...toFormValues(FULL), clientUrl: 'https://events.eu.pagerduty.com/v2/enqueue' };
  expect(toTestFields(values, 'job.run.errored')).toMatchObject({
    format: 'pagerduty',
    format_options: null,
    headers: {},
  });
  expect(hasSameDestination(values, toFormValues(FULL))).toBe(false);
  const asSlack = { ...toFormValues(FULL), format: 'slack' as const };
  expect(hasSameDestination(asSlack, toFormValues(FULL))).toBe(true);
  expect(hasSameFormat(asSlack, toFormValues(FULL))).toBe(false);
  expect(toTestFields(NEW_WEBHOOK, 'job.run.started')).not.toHaveProperty('format');
});

test('a test asks for a required option that it would not send', () => {
  const stored = toFormValues(FULL);
  expect(checkTestFields(stored, true)).toEqual({});
  expect(checkTestFields(stored, false).formatOptions).toMatch(
    /^To test these changes, enter “Integration key” again/,
  );
  expect(checkTestFields({ ...stored, formatOptions: { routing_key: 'new' } }, false)).toEqual({});
  const { formatOptions } = checkTestFields({ ...stored, storedFormatOptions: [] }, true);
  expect(formatOptions).toBe('Enter “Integration key”.');
});

test('a copy has no stored values, and is saved only once they are entered', () => {
  const copy = toCopyValues(FULL);
  expect(copy.name).toBe('Copy of Alerts');
  expect(toApiFields(copy).format_options).toBeNull();
  expect(checkWebhook(copy)).toEqual({ headers: 'Give each header a value.' });
});

test('a webhook with a feed only has an empty endpoint', () => {
  const values = toFormValues({ ...PLAIN, client_url: '' });
  expect(values.isFeedOnly).toBe(true);
  expect(checkWebhook(values)).toEqual({});
  expect(toApiFields({ ...values, clientUrl: 'https://example.com' }).client_url).toBe('');
});

test.each([
  ['0', true],
  ['1001', true],
  ['a', true],
  ['0.1', false],
  ['1000', false],
  ['', false],
])('the rate limit %j is rejected: %s', (rateLimit, isRejected) => {
  const { rateLimit: problem } = checkWebhook({ ...toFormValues(PLAIN), rateLimit });
  expect(problem !== undefined).toBe(isRejected);
});

test('labels need different names', () => {
  const label = { key: '1', name: 'team', value: 'data' };
  const problemOf = (labels: (typeof label)[]) => checkWebhook({ ...toFormValues(PLAIN), labels }).labels;
  expect(problemOf([label])).toBeUndefined();
  expect(problemOf([label, { ...label, key: '2' }])).toBe('Give each label a different name.');
  expect(problemOf([{ ...label, name: ' ' }])).toBe('Give each label a name, or remove it.');
});

test('problems of the server belong to fields of the form', () => {
  expect(
    toFieldProblems({
      'format_options.routing_key': 'must be 32 characters',
      'filters.project_ids': 'must name projects of this account',
      filters: 'match no event',
    }),
  ).toEqual({
    formatOptions: 'Integration key must be 32 characters.',
    projectIds: 'The projects must name projects of this account.',
    runStatuses: 'The filters match no event.',
  });
});

test('the form states how many recent events match', () => {
  const counts = { matched_count: 412, total_count: 2_310, since: '1795000000000000', is_complete: true };
  expect(describeMatchCount(counts)).toMatch(/^412 of 2.310 events of the last 7 days match\.$/);
  expect(describeMatchCount({ ...counts, matched_count: 1 })).toMatch(/^1 of 2.310 .* matches\.$/);
  expect(describeMatchCount({ ...counts, is_complete: false })).toMatch(/events since .* match\.$/);
  expect(describeMatchCount({ ...counts, total_count: 0 })).toBe('There were no events in the last 7 days.');
});

test('the form states which rate limit the recent events need', () => {
  const counted = { lowest_rate_limit: 2.314, since: '1795000000000000', is_complete: true };
  const need = 'need at least 2.314 per second';
  expect(describeRateLimit(counted, 5)).toMatch(/^The matching events of the last 7 days need/);
  expect(describeRateLimit(counted, 5)).toContain(need);
  expect(describeRateLimit(counted, 2)).toMatch(
    /^With the matching events of the last 7 days, deliveries would have/,
  );
  expect(describeRateLimit(counted, 2)).toContain(need);
  expect(describeRateLimit({ ...counted, is_complete: false }, 5)).toContain('The matching events since ');
  expect(describeRateLimit({ ...counted, lowest_rate_limit: 0 }, 5)).toBeNull();
});
