import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { EVENT_TYPES } from '@runhook/contract';
import { Ajv, type Options } from 'ajv';
import formats from 'ajv-formats';
import { type Harness, startHarness } from '../harness.ts';

interface GoldenEvent {
  name: string;
  published: unknown;
  body?: string;
  problem?: string;
}

const GOLDEN = new URL('../../../../packages/contract/golden/events.json', import.meta.url);
const { events } = JSON.parse(await readFile(GOLDEN, 'utf8')) as { events: GoldenEvent[] };

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

async function read(path: string): Promise<Record<string, unknown>> {
  const { status, headers, json } = await harness.call('GET', path);
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  return json;
}

function validator(options: Options = { strict: true, strictRequired: false }): Ajv {
  const ajv = new Ajv({ ...options, allErrors: true });
  formats.default(ajv);
  return ajv;
}

test('the document of the queue is valid AsyncAPI 3.0 by the official schema', async () => {
  const schema = createRequire(import.meta.url)('@asyncapi/specs/schemas/3.0.0.json');
  const ajv = new Ajv({ strict: false, meta: false, validateSchema: false, logger: false });
  formats.default(ajv);
  const check = ajv.compile(schema);
  const document = await read('/asyncapi.json');
  expect({ isValid: check(document), errors: check.errors }).toEqual({ isValid: true, errors: null });
  expect(document.info).toMatchObject({ contact: {}, license: { name: 'Apache License 2.0' }, tags: [{}] });
  expect((await harness.call('POST', '/asyncapi.json')).status).toBe(405);
  expect(check({ ...document, operations: { receiveEvents: { action: 'take' } } })).toBe(false);
  for (const text of JSON.stringify(document).match(/"#\/[^"]+"/g) ?? []) {
    const steps = (JSON.parse(text) as string).slice(2).split('/');
    const target = steps.reduce<unknown>((at, step) => (at as Record<string, unknown>)?.[step], document);
    expect({ text, isThere: target !== undefined }).toEqual({ text, isThere: true });
  }
});

test('each event type of the AsyncAPI document has an example that its schema accepts', async () => {
  const document = (await read('/asyncapi.json')) as {
    components: {
      messages: Record<string, { name: string; payload: object; examples?: { payload: unknown }[] }>;
    };
  };
  // Other keys of the document are not keywords of a schema.
  const ajv = validator({ strict: false }).addSchema(document, 'asyncapi.json');
  const examples: unknown[] = [];
  for (const [name, message] of Object.entries(document.components.messages)) {
    const check = ajv.compile({ $ref: `asyncapi.json#/components/messages/${name}/payload` });
    for (const { payload } of message.examples ?? []) {
      expect({ name, isValid: check(payload), errors: check.errors }).toMatchObject({ isValid: true });
      examples.push(payload);
    }
    if (message.name === 'job.run.batch') {
      expect(check({ events: examples })).toBe(true);
      const anonymous = { ...(examples[0] as object), eventId: undefined };
      expect(check(JSON.parse(JSON.stringify({ events: [anonymous, anonymous] })))).toBe(false);
    }
  }
  expect(examples).toHaveLength(EVENT_TYPES.length);
});

/** Events that the schema accepts although the queue rejects them: no readable pattern excludes ids above 2^53 - 1. */
const NOT_IN_SCHEMA = ['an id that is no longer exact'];

test('the JSON schemas accept the valid golden events and reject the invalid ones at the right field', async () => {
  const isPublished = validator().compile(await read('/schemas/published-event.json'));
  const isPayload = validator().compile(await read('/schemas/delivery-payload.json'));
  const beyond: string[] = [];
  for (const { name, published, body, problem } of events) {
    const isValid = isPublished(published);
    if (problem === undefined) expect({ name, errors: isPublished.errors }).toEqual({ name, errors: null });
    else if (isValid) beyond.push(name);
    else {
      const errorPaths = (isPublished.errors ?? []).map(({ instancePath, params }) =>
        [instancePath, params.missingProperty].filter(Boolean).join('/').slice(1).replaceAll('/', '.'),
      );
      expect({ name, errorPaths }).toEqual({ name, errorPaths: expect.arrayContaining([problem]) });
    }
    if (body === undefined) continue;
    expect({ name, isValid: isPayload(JSON.parse(body)), errors: isPayload.errors }).toMatchObject({
      isValid: true,
    });
    expect(isPayload(published)).toBe(false);
  }
  expect(beyond).toEqual(NOT_IN_SCHEMA);
});
