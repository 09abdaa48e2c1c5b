import { expect, test } from '@jest/globals';
import { parseSubscription } from '@runhook/contract';

const valid = { name: 'Alerts', event_types: ['job.run.errored'], client_url: 'https://example.com/hook' };
const parse = (fields: object) => parseSubscription({ ...valid, ...fields }, () => null);
const labels = (count: number) => Object.fromEntries([...Array(count)].map((_, n) => [`l${n}`, '']));

test('omitted options are undefined', () => {
  expect(parse({}).fields).toEqual({ ...valid, description: '', job_ids: [] });
});

test.each([
  ['format', 'slack', 'slack'],
  ['format', 'runhook', null],
  ['format', null, null],
  ['format_options', { routing_key: '***' }, { routing_key: '***' }],
  ['format_options', {}, null],
  ['filters', { run_statuses: ['20'], project_ids: 7 }, { run_statuses: [20], project_ids: [7] }],
  ['filters', { run_statuses: [] }, null],
  ['ordered', false, false],
  ['rate_limit', 0.1, 0.1],
  ['rate_limit', 1_000, 1_000],
  ['labels', { 'a.b/c_d-e': 'ж'.repeat(255), 1: '' }, { 'a.b/c_d-e': 'ж'.repeat(255), 1: '' }],
  ['labels', labels(10), labels(10)],
  ['labels', null, null],
  ['deactivate_on_410', null, null],
])('%s %j is read as %j', (field, value, read) => {
  expect(parse({ [field]: value }).fields).toHaveProperty([field], read);
});

test.each([
  ['format', 7, 'format'],
  ['format', 'constructor', 'format'],
  ['format_options', [], 'format_options'],
  ['format_options', { routing_key: '' }, 'format_options.routing_key'],
  ['format_options', { routing_key: 'x'.repeat(2_049) }, 'format_options.routing_key'],
  ['format_options', { 'routing key': 'x' }, 'format_options.routing key'],
  ['filters', { statuses: [20] }, 'filters.statuses'],
  ['rate_limit', 0.09, 'rate_limit'],
  ['rate_limit', 1_000.5, 'rate_limit'],
  ['rate_limit', '5', 'rate_limit'],
  ['labels', labels(11), 'labels'],
  ['labels', { '-a': '' }, 'labels.-a'],
  ['labels', { [`a${'b'.repeat(63)}`]: '' }, `labels.a${'b'.repeat(63)}`],
  ['labels', { a: 'x'.repeat(256) }, 'labels.a'],
  ['labels', { a: '\ud800' }, 'labels.a'],
  ['labels', { a: null }, 'labels.a'],
  ['labels', { _a: '' }, 'labels._a'],
  ['ordered', 1, 'ordered'],
  ['deactivate_on_410', 'true', 'deactivate_on_410'],
])('%s %j is rejected', (field, value, problem) => {
  expect(parse({ [field]: value }).problems?.map((one) => one.field)).toEqual([problem]);
});
