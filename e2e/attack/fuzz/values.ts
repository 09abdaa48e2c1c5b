import type { SeededRandom } from '../../chaos/seeded-random.ts';

/** Returns a random item. The list must not be empty. */
export function pick<T>(random: SeededRandom, items: readonly T[]): T {
  return items[random.between(0, items.length - 1)] as T;
}

/** Texts that often break parsers and databases. */
export const ODD_TEXTS = [
  '',
  ' ',
  '0',
  '-1',
  '1e309',
  '9007199254740993',
  '99999999999999999999',
  '9223372036854775808',
  'NaN',
  'null',
  'true',
  '\0',
  'a\0b',
  '\ud800',
  '\u202e\u200b',
  '🚀'.repeat(100),
  "' OR 1=1; --",
  '"; DROP TABLE users',
  '%',
  '_%\\',
  '%00',
  '%ff',
  '%2e%2e%2f',
  '../../etc/passwd',
  '$(id)',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '\r\nX-Injected: 1',
  '0000-00-00T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59Z',
  '10000-01-01T00:00:00Z',
  '2026-02-30',
  '253402300800000000',
  'constructor',
  '__proto__',
  'wsu_',
  `wsu_${'z'.repeat(27)}`,
  `wdl_${'0'.repeat(27)}`,
  `wrc_${'9'.repeat(27)}`,
  'http://unix:/var/run/docker.sock',
  'http://[::ffff:127.0.0.1]/',
  'http://169.254.169.254/',
  'javascript:alert(1)',
  'https://a:b@example.com/',
  'x'.repeat(5_000),
];

const ODD_NUMBERS = [0, -0, -1, 1.5, 2 ** 31, 2 ** 53, 2 ** 63, 1e308, -1e308, 5e-324];

/** Returns a value of any type, sometimes a deeply nested or long one. */
export function createOddValue(random: SeededRandom, depth = 0): unknown {
  switch (random.between(0, depth > 3 ? 4 : 9)) {
    case 0:
      return null;
    case 1:
      return random.next() < 0.5;
    case 2:
      return pick(random, ODD_NUMBERS);
    case 3:
    case 4:
      return pick(random, ODD_TEXTS);
    case 5:
      return Array.from({ length: random.between(0, 5) }, () => createOddValue(random, depth + 1));
    case 6:
      return { [pick(random, ODD_TEXTS).slice(0, 100)]: createOddValue(random, depth + 1) };
    case 7:
      return createNested(random.between(2, 200), random.next() < 0.5);
    case 8:
      return Array.from({ length: random.between(100, 10_000) }, (_, index) => index);
    default:
      return 'y'.repeat(random.between(1_000, 70_000));
  }
}

function createNested(levels: number, isArray: boolean): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = isArray ? [value] : { a: value };
  return value;
}

/** Replaces, removes, duplicates or adds a member of the body. */
export function mutateBody(random: SeededRandom, body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return createOddValue(random);
  const fields = { ...(body as Record<string, unknown>) };
  const name = pick(random, Object.keys(fields));
  switch (random.between(0, 4)) {
    case 0:
      delete fields[name];
      break;
    case 1:
      fields[name] = [fields[name], fields[name]];
      break;
    case 2:
      fields[pick(random, ODD_TEXTS).slice(0, 200)] = createOddValue(random);
      break;
    default:
      fields[name] = createOddValue(random);
  }
  return random.next() < 0.3 ? mutateBody(random, fields) : fields;
}

/** Returns bytes that are invalid JSON, or larger than any valid body. */
export function createOddBytes(random: SeededRandom): Buffer {
  switch (random.between(0, 7)) {
    case 0:
      return Buffer.from('{');
    case 1:
      return Buffer.from('{"a":1}}');
    case 2:
      return Buffer.from([0xff, 0xfe, 0x00, 0x7b]);
    case 3:
      return Buffer.from('['.repeat(random.between(1_000, 60_000)));
    case 4:
      return Buffer.from(`${'['.repeat(20_000)}${']'.repeat(20_000)}`);
    case 5:
      return Buffer.from(`{${'"a":1,'.repeat(8_000)}"a":1}`);
    case 6:
      return Buffer.alloc(random.between(60_000, 500_000), 0x20);
    default:
      return Buffer.from(Array.from({ length: random.between(1, 300) }, () => random.between(0, 255)));
  }
}

const ODD_HEADERS: Record<string, readonly string[]> = {
  'content-type': [
    'text/plain',
    'application/json; charset=utf-16',
    'application/json; charset="',
    'application/json;;;',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
    '',
  ],
  'content-encoding': ['gzip', 'br', 'identity', 'x'],
  'idempotency-key': ['', ' ', 'k', 'k'.repeat(256), 'ä', '\t', 'k'],
  'x-request-id': ['', 'x'.repeat(200), '../x', 'plain'],
  'x-forwarded-for': ['127.0.0.1', 'x', '1.2.3.4, 5.6.7.8', '::1'],
  accept: ['text/html', '*/*;q=x', ''],
  cookie: ['runhook_session=x', 'runhook_session=', '=;=;', 'runhook_device=~.~', `a=${'b'.repeat(4_000)}`],
  expect: ['100-continue', 'x'],
  range: ['bytes=0-1'],
  'if-none-match': ['*'],
  origin: ['null', 'http://evil.example'],
  traceparent: ['x', `00-${'f'.repeat(32)}-${'f'.repeat(16)}-ff`],
  upgrade: ['websocket'],
};

/** Returns a header that no client of Runhook sends. */
export function createOddHeader(random: SeededRandom): [name: string, value: string] {
  const name = pick(random, Object.keys(ODD_HEADERS));
  return [name, pick(random, ODD_HEADERS[name] ?? [''])];
}
