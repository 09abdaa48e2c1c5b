import { expect, test } from '@jest/globals';
import { MODEL_LIMITS, ModelScanner } from '../../src/artifacts/model-scanner.ts';

function scan(document: unknown, chunkBytes = 1_000_000) {
  const bytes = Buffer.from(typeof document === 'string' ? document : JSON.stringify(document));
  const scanner = new ModelScanner();
  for (let start = 0; start < bytes.length; start += chunkBytes)
    scanner.push(bytes.subarray(start, start + chunkBytes));
  return scanner.end();
}

const entry = (fields: object = {}) => ({
  unique_id: 'model.analytics.orders',
  status: 'success',
  execution_time: 1.5,
  message: 'SELECT 3 "{[" \\',
  thread_id: 'Thread-1',
  timing: [{ name: 'execute', started_at: '2026-11-28T10:00:00Z' }],
  adapter_response: { results: [{ unique_id: 'x', status: 'y' }] },
  compiled_code: 'select \'}]\' -- "results": [',
  ...fields,
});

const ORDERS = {
  unique_id: 'model.analytics.orders',
  name: 'orders',
  resource_type: 'model',
  status: 'success',
  execution_time: 1.5,
  message: 'SELECT 3 "{[" \\',
  thread_id: 'Thread-1',
};

const document = {
  metadata: { results: [entry({ unique_id: 'model.a.nested' })], 'a "results"': '[' },
  results: [entry(), entry({ unique_id: 'test.analytics.not_null.abc123', status: 'fail', message: null })],
  elapsed_time: 3.2,
  args: { results: 'results' },
};

test.each([1, 2, 7, 64, 1_000_000])(
  'finds the models of a file that arrives in chunks of %i bytes',
  (size) => {
    expect(scan(document, size)).toEqual([
      ORDERS,
      {
        ...ORDERS,
        unique_id: 'test.analytics.not_null.abc123',
        name: 'not_null.abc123',
        resource_type: 'test',
        status: 'fail',
        message: null,
      },
    ]);
  },
);

test('is independent of white space and of escapes in strings', () => {
  expect(scan(JSON.stringify(document, null, 4))).toHaveLength(2);
  expect(scan(' \n{"a":"\\\\","results" : [ ] }')).toEqual([]);
});

test.each([
  ['', 'no document'],
  ['[]', 'an array'],
  ['"results"', 'a string'],
  ['{}', 'no results'],
  ['{"results": {}}', 'results that are no array'],
  ['{"results": [{"unique_id": "a", "status": "b"}', 'a document that ends early'],
  ['{"results": [{unique_id: 1}]}', 'an entry that is not JSON'],
  ['{"results": []}}', 'a closing bracket too many'],
  ['PK\u0003\u0004', 'another format'],
])('%s is not a file with models: %s', (text) => {
  expect(scan(text)).toBeNull();
});

test('ignores entries that name no model', () => {
  const results = [null, 3, 'x', [entry()], {}, { unique_id: 5, status: 'x' }, { unique_id: 'model.a.b' }];
  expect(scan({ results })).toEqual([]);
});

test('truncates texts, repairs invalid characters, and drops what is not a number', () => {
  const [model] =
    scan({
      results: [
        entry({
          unique_id: `model.a.${'x'.repeat(2_000)}`,
          message: `\0${'é'.repeat(5_000)}`,
          execution_time: '1',
        }),
      ],
    }) ?? [];
  expect(model?.unique_id).toHaveLength(MODEL_LIMITS.idCharactersMax);
  expect(model?.message).toBe(`\uFFFD${'é'.repeat(MODEL_LIMITS.messageCharactersMax - 1)}`);
  expect(model?.execution_time).toBeNull();
});

test('leaves out entries beyond the limits', () => {
  const large = entry({ compiled_code: 'x'.repeat(MODEL_LIMITS.entryBytesMax) });
  expect(scan({ results: [entry(), large, entry()] }, 65_536)).toEqual([ORDERS, ORDERS]);
  const many = {
    results: Array.from({ length: MODEL_LIMITS.modelsMax + 5 }, () => ({ unique_id: 'a', status: 'b' })),
  };
  expect(scan(many)).toHaveLength(MODEL_LIMITS.modelsMax);
  const long = entry({ unique_id: 'model.a.b', message: 'm'.repeat(MODEL_LIMITS.messageCharactersMax) });
  const count = Math.ceil(MODEL_LIMITS.textMax / MODEL_LIMITS.messageCharactersMax) + 10;
  expect(scan({ results: Array.from({ length: count }, () => long) })?.length).toBeLessThan(count - 10);
});
