import { expect, test } from '@jest/globals';
import { HEADER_LIMITS, SUBSCRIPTION_LIMITS } from '@runhook/contract';
import { checkWebhook, LIMITS, toFieldProblems } from '../src/webhook-form/webhook-checks.ts';
import { NEW_WEBHOOK } from '../src/webhook-form/webhook-values.ts';
import { describeAction, describeActor, formatDetails } from '../src/wording/audit.ts';
import { formatStatus, statusTone } from '../src/wording/http-status.ts';
import {
  formatDuration,
  formatExactLocalTime,
  formatRelativeTime,
  formatUtcTime,
  formatWait,
  parseTime,
} from '../src/wording/time.ts';
import { formatJobs, webhooksDenialReason, writeDenialReason } from '../src/wording/webhooks.ts';

test.each([
  ['0', 'never triggered', 'neutral'],
  ['200', '200 OK', 'good'],
  ['204', '204 No content', 'good'],
  ['302', '302 Found', 'bad'],
  ['410', '410 Gone', 'bad'],
  ['299', '299 Success', 'good'],
  ['599', '599 Server error', 'bad'],
  ['999', '999', 'bad'],
])('status %s is shown as "%s" with the tone %s', (code, text, tone) => {
  expect([formatStatus(code, tone === 'bad' ? 'unsuccessful_status' : null), statusTone(code)]).toEqual([
    text,
    tone,
  ]);
});

test.each([
  ['502', 'unsuccessful_status', '502 Bad gateway'],
  ['200', 'not_accepted', '200 but not accepted'],
  ['504', 'unsuccessful_status', '504 Gateway timeout'],
  ['502', 'connection_refused', '502 could not be reached'],
  ['502', 'no_address', '502 could not be reached'],
  ['502', 'tls_untrusted', '502 certificate not trusted'],
  ['502', 'connection_reset', '502 connection closed'],
  ['504', 'timeout', '504 timed out'],
  ['502', null, '502'],
  ['504', null, '504'],
])('status %s with the error code %s is shown as "%s"', (code, errorCode, text) => {
  expect(formatStatus(code, errorCode)).toBe(text);
});

test('an exact time omits the date if it is today, and the year if it is the current one', () => {
  const at = (...parts: [number, number, number]) => new Date(...parts, 14, 3, 7);
  const text = (...parts: [number, number, number]) =>
    formatExactLocalTime(at(...parts), at(2026, 10, 22).getTime());
  const time = text(2026, 10, 22);
  expect(time).toMatch(/^\D*\d{1,2}\D03\D07/);
  expect(text(2026, 10, 21)).toMatch(/21.*, /);
  expect(text(2026, 10, 21).endsWith(time)).toBe(true);
  expect(text(2026, 10, 21)).not.toContain('2026');
  expect(text(2025, 10, 22)).toContain('2025');
});

test('a time is parsed from microseconds and from ISO 8601', () => {
  const date = new Date('2026-01-31T19:28:07.123Z');
  expect(parseTime('1769887687123456')).toEqual(date);
  expect(parseTime('2026-01-31T19:28:07.123Z')).toEqual(date);
  expect(parseTime('soon')).toBeNull();
  expect(formatUtcTime(date)).toBe('2026-01-31 19:28:07.123 UTC');
});

test.each([
  [0, 'just now'],
  [-9_000, 'just now'],
  [-10_000, '10 s ago'],
  [-61_000, '1 min ago'],
  [-3_600_000, '1 h ago'],
  [-86_400_000, '1 day ago'],
  [-6.5 * 86_400_000, '6 days ago'],
  [-7 * 86_400_000, null],
  [400, 'in 1 s'],
  [30_000, 'in 30 s'],
  [3_700_000, 'in 1 h'],
])('a time %d ms away is shown as "%s"', (differenceMs, text) => {
  const nowMs = Date.UTC(2026, 0, 31);
  expect(formatRelativeTime(new Date(nowMs + differenceMs), nowMs)).toBe(text);
});

test('durations and waits are shown in a suitable unit, and waits are rounded up', () => {
  expect([84, 999, 1_250, 9_999, 10_000, 60_000, 200_000].map(formatDuration)).toEqual([
    '84 ms',
    '999 ms',
    '1.2 s',
    '9.9 s',
    '10 s',
    '1 min',
    '3 min 20 s',
  ]);
  expect([1, 59, 60, 61, 900].map(formatWait)).toEqual([
    '1 second',
    '59 seconds',
    '1 minute',
    '2 minutes',
    '15 minutes',
  ]);
});

test('up to two jobs are named, more are counted, and none means all jobs', () => {
  const names = new Map([['1', 'Nightly build']]);
  expect(formatJobs([], names)).toBe('All jobs');
  expect(formatJobs(['1', '2'], names)).toBe('Nightly build, Job 2');
  expect(formatJobs(['1', '2', '3'], names)).toBe('3 jobs');
});

test('the limits of the form equal those of the contract', () => {
  expect(LIMITS).toMatchObject({
    name: SUBSCRIPTION_LIMITS.nameCharactersMax,
    description: SUBSCRIPTION_LIMITS.descriptionCharactersMax,
    clientUrl: SUBSCRIPTION_LIMITS.clientUrlCharactersMax,
    jobIds: SUBSCRIPTION_LIMITS.jobIdsMax,
    headers: HEADER_LIMITS.headersMax,
    headerName: HEADER_LIMITS.nameCharactersMax,
    headerValue: HEADER_LIMITS.valueCharactersMax,
  });
});

test('an empty form reports each required field, and the endpoint must be an HTTP URL', () => {
  expect(Object.keys(checkWebhook(NEW_WEBHOOK))).toEqual(['name', 'eventTypes', 'clientUrl']);
  const clientUrl = (text: string) =>
    checkWebhook({ ...NEW_WEBHOOK, name: 'x', eventTypes: ['job.run.started'], clientUrl: text }).clientUrl;
  expect(clientUrl('https://example.com/hook')).toBeUndefined();
  expect(clientUrl('example.com/hook')).toMatch(/begins with https/);
  expect(clientUrl('ftp://example.com')).toMatch(/begins with https/);
  expect(clientUrl('https://')).toMatch(/not a valid address/);
});

test('header names that differ only in case or surrounding spaces are duplicates', () => {
  const problemOf = (...names: string[]) =>
    checkWebhook({
      ...NEW_WEBHOOK,
      headers: names.map((name, index) => ({ key: String(index), name, value: 'x', isStored: false })),
    }).headers;
  expect(problemOf('X-Gate', 'X-Key')).toBeUndefined();
  expect(problemOf('X-Gate', 'x-gate ')).toBe('Give each header a different name.');
});

test('problems that the server reports are assigned to their fields', () => {
  expect(
    toFieldProblems({
      client_url: 'must not be an address of a private network',
      'event_types.0': 'must be one of [job.run.started]',
      unknown: 'is strange',
    }),
  ).toEqual({
    clientUrl: 'The endpoint must not be an address of a private network.',
    eventTypes: 'The events must be one of [job.run.started].',
  });
});

test('a user who may not change webhooks gets the reason, one who may gets none', () => {
  const account = { license: 'read_only', webhooks_unavailable: null, may_write_webhooks: false } as const;
  expect(writeDenialReason({ ...account, plan: 'team' })).toMatch(/Developer license. Yours is Read-only/);
  expect(writeDenialReason({ ...account, plan: 'enterprise' })).toMatch(/permission set/);
  expect(writeDenialReason({ ...account, plan: 'free', webhooks_unavailable: 'plan' })).toMatch(/Free plan/);
  expect(webhooksDenialReason({ plan: 'enterprise', webhooks_unavailable: 'deployment' })).toMatch(/private/);
  expect(writeDenialReason({ ...account, plan: 'team', may_write_webhooks: true })).toBeNull();
});

test('failed sign-ins in the audit log have their number, network and 15 minutes, and no actor', () => {
  const target = { kind: 'user', id: '7', name: 'ada@example.com' } as const;
  expect(describeActor({ kind: 'anonymous', id: null, name: null })).toBe('Unknown caller');
  expect(describeAction({ action: 'session.sign_in_failed', target })).toBe(
    'tried to sign in as ada@example.com with a wrong password',
  );
  const windowStart = String(Date.UTC(2026, 10, 28, 12) * 1_000);
  const details = { count: 3, network: '192.0.2.0/24', window_start: windowStart };
  expect(formatDetails(details)).toMatch(/^3 times from 192\.0\.2\.0\/24 in the 15 minutes from .*2026/);
  expect(formatDetails({ ...details, count: 1 })).toMatch(/^once from /);
});
