import { describe, expect, test } from '@jest/globals';
import { parseSubscription } from '@runhook/contract';

const valid = { name: 'Alerts', event_types: ['job.run.errored'], client_url: 'https://example.com/hook' };
const anyUrl = () => null;
const named = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, 'x']));
/** Every reserved name of docs/contract.md#headers-of-deliveries. */
const RESERVED = [
  'Accept-Encoding',
  'CONNECTION',
  'Content-Encoding',
  'content-length',
  'Content-Type',
  'Cookie',
  'Expect',
  'Forwarded',
  'Host',
  'HTTP2-Settings',
  'Keep-Alive',
  'Proxy-Authorization',
  'Set-Cookie',
  'TE',
  'traceparent',
  'tracestate',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'User-Agent',
  'Via',
  'webhook-anything',
  'X-Forwarded-For',
  'X-Real-IP',
];

test.each([
  ['an absent value', undefined, undefined],
  ['null', null, null],
  ['the default header name in any capitalization', 'AUTHORIZATION', null],
  ['another header name', 'X-Signature', 'X-Signature'],
])('signature_header accepts %s', (_case, signature_header, read) => {
  expect(parseSubscription({ ...valid, signature_header }, anyUrl).fields?.signature_header).toBe(read);
});

test.each([
  ['an absent value', undefined],
  ['null', null],
  ['an empty object', {}],
  ['ten headers with Authorization', { ...named(9), Authorization: 'Basic YTpi', 'X-0': '{"a": ~!}' }],
])('headers accepts %s', (_case, headers) => {
  expect(parseSubscription({ ...valid, headers }, anyUrl).fields?.headers).toEqual(headers);
});

test('only name, event_types and client_url are required, and the other fields have defaults', () => {
  expect(parseSubscription(valid, anyUrl).fields).toEqual({
    ...valid,
    description: '',
    job_ids: [],
    active: undefined,
  });
});

test('unknown fields are ignored', () => {
  expect(parseSubscription({ ...valid, id: '', hmac_secret: 'x' }, anyUrl).fields).not.toHaveProperty('id');
});

test.each([
  ['integers', [3, 1, 2], [3, 1, 2]],
  ['digit strings', ['3', '1'], [3, 1]],
  ['a single integer', 7, [7]],
  ['a single digit string', '7', [7]],
  ['null', null, []],
  ['duplicates, and drops them', [3, '3', 1, 3], [3, 1]],
])('job_ids accepts %s', (_case, job_ids, read) => {
  expect(parseSubscription({ ...valid, job_ids }, anyUrl).fields?.job_ids).toEqual(read);
});

describe('parseSubscription()', () => {
  test.each([
    ['a body that is an array', [], 'body'],
    ['a missing body', undefined, 'body'],
    ['a missing name', { ...valid, name: undefined }, 'name'],
    ['an empty name', { ...valid, name: '' }, 'name'],
    ['a name of 256 characters', { ...valid, name: 'x'.repeat(256) }, 'name'],
    ['a name with NUL', { ...valid, name: 'a\0b' }, 'name'],
    ['a name that is a number', { ...valid, name: 7 }, 'name'],
    ['a description of 2,001 characters', { ...valid, description: 'x'.repeat(2_001) }, 'description'],
    ['a description that is a list', { ...valid, description: [] }, 'description'],
    ['an empty list of event types', { ...valid, event_types: [] }, 'event_types'],
    ['event types in a string', { ...valid, event_types: 'job.run.started' }, 'event_types'],
    ['an unknown event type', { ...valid, event_types: ['job.run.exploded'] }, 'event_types.0'],
    [
      'a repeated event type',
      { ...valid, event_types: ['job.run.errored', 'job.run.errored'] },
      'event_types.1',
    ],
    ['job ids of another kind', { ...valid, job_ids: [{}] }, 'job_ids'],
    ['a job id of 0', { ...valid, job_ids: [0] }, 'job_ids'],
    ['a job id with a fraction', { ...valid, job_ids: [1.5] }, 'job_ids'],
    ['a job id beyond exact integers', { ...valid, job_ids: ['9007199254740993'] }, 'job_ids'],
    [
      '1,001 job ids',
      { ...valid, job_ids: Array.from({ length: 1_001 }, (_, index) => index + 1) },
      'job_ids',
    ],
    ['an endpoint that is a number', { ...valid, client_url: 7 }, 'client_url'],
    ['active in a string', { ...valid, active: 'true' }, 'active'],
    ['a signature header that is a number', { ...valid, signature_header: 7 }, 'signature_header'],
    ['an empty signature header', { ...valid, signature_header: '' }, 'signature_header'],
    ['a signature header with a space', { ...valid, signature_header: 'X Sig' }, 'signature_header'],
    ['headers in a list', { ...valid, headers: [] }, 'headers'],
    ['eleven headers', { ...valid, headers: named(11) }, 'headers'],
    ['a header twice', { ...valid, headers: { 'X-Gate': 'a', 'x-gate': 'b' } }, 'headers'],
    ['a header without a name', { ...valid, headers: { '': 'a' } }, 'headers.'],
    [
      'a header name of 65 characters',
      { ...valid, headers: { [`X${'x'.repeat(64)}`]: 'a' } },
      `headers.X${'x'.repeat(64)}`,
    ],
    ['a header value that is a number', { ...valid, headers: { 'X-Gate': 7 } }, 'headers.X-Gate'],
    ['an empty header value', { ...valid, headers: { 'X-Gate': '' } }, 'headers.X-Gate'],
    [
      'a header value of 2,049 characters',
      { ...valid, headers: { 'X-Gate': 'x'.repeat(2_049) } },
      'headers.X-Gate',
    ],
    ['a header value that ends in a space', { ...valid, headers: { 'X-Gate': 'x ' } }, 'headers.X-Gate'],
    ['a header value that is not ASCII', { ...valid, headers: { 'X-Gate': 'é' } }, 'headers.X-Gate'],
    ...['\0', '\ud83d', '\ude80', '\ufffe', '\ufdd0', '\u{1ffff}'].flatMap((character) => {
      const text = `a${character}b`;
      return (['name', 'description', 'client_url'] as const).map((field): [string, object, string] => [
        `${JSON.stringify(character)} in ${field}`,
        { ...valid, [field]: field === 'client_url' ? `https://example.com/${text}` : text },
        field,
      ]);
    }),
    ...['\0', '\ud83d', '\ude80', '\ufffe', '\ufdd0', '\u{1ffff}'].flatMap(
      (character): [string, object, string][] => [
        [
          `${JSON.stringify(character)} in a header's value`,
          { ...valid, headers: { 'X-Gate': `a${character}b` } },
          'headers.X-Gate',
        ],
        [
          `${JSON.stringify(character)} in a header's name`,
          { ...valid, headers: { [`X-${character}`]: 'a' } },
          `headers.X-${character}`,
        ],
        [
          `${JSON.stringify(character)} in the signature header`,
          { ...valid, signature_header: `X-${character}` },
          'signature_header',
        ],
      ],
    ),
    ...['\0', '\t', '\n', '\r', '\x1b', '\x7f'].map((character): [string, object, string] => [
      `${JSON.stringify(character)} in a header value`,
      { ...valid, headers: { 'X-Gate': `a${character}b` } },
      'headers.X-Gate',
    ]),
    ...RESERVED.map((name): [string, object, string] => [
      `the header ${name}`,
      { ...valid, headers: { [name]: 'x' } },
      `headers.${name}`,
    ]),
  ])('rejects %s and names the field', (_case, body, field) => {
    const problems = parseSubscription(body, anyUrl).problems ?? [];
    expect(problems.map((problem) => problem.field)).toEqual([field]);
    expect(problems[0]?.message).toContain(field.replace(/\.(\d)$/, '[$1]'));
  });
});

test('a problem of the URL that the egress guard reports is returned for the field client_url', () => {
  expect(parseSubscription(valid, () => 'must not point to the moon').problems).toEqual([
    { field: 'client_url', message: 'client_url must not point to the moon' },
  ]);
});
