import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  createId,
  EVENT_TYPES,
  hasInvalidText,
  isId,
  type JobRunEvent,
  renderPayload,
  SUBSCRIPTION_LIMITS,
  sampleEvent,
} from '@runhook/contract';
import { Validator } from '@seriousme/openapi-schema-validator';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import {
  type MediaType,
  OPTIONAL_NAME_PATTERN,
  type OpenApiDocument,
  type PathItem,
  requiredName,
  requiredText,
  type Schema,
} from '../../src/http/openapi/field-schemas.ts';
import { PARAMETERS } from '../../src/http/openapi/parameters.ts';
import { PAYLOAD_EXAMPLES } from '../../src/http/openapi/webhooks.ts';
import { readSettings } from '../../src/settings.ts';
import { type Harness, SUBSCRIPTION_FIELDS, startHarness } from '../harness.ts';
import { createStrictSchemaChecker } from '../response-checker.ts';

const document = openApiDocument();
const check = createStrictSchemaChecker(document);

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness();
});

afterAll(() => harness.close());

const METHODS = ['get', 'post', 'put', 'delete'] as const;

function methodsOf(item: PathItem): string[] {
  return METHODS.filter((method) => item[method]).map((method) => method.toUpperCase());
}

/** Yields every object within a value with its path. */
function* objectsIn(value: unknown, path = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [path, value as Record<string, unknown>];
  for (const [key, inner] of Object.entries(value)) yield* objectsIn(inner, `${path}/${key}`);
}

describe('the OpenAPI document', () => {
  test('is served without authentication as generated, with the version of the package', async () => {
    const { status, headers, json } = await harness.call('GET', '/openapi.json');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(json).toEqual(JSON.parse(JSON.stringify(document)));
    expect(json.info.version).toMatch(/^\d+\.\d+\.\d+/);
    expect((await harness.call('GET', '/openapi.json/')).json).toEqual(json);
    const postResponse = await harness.call('POST', '/openapi.json');
    expect(postResponse.status).toBe(405);
    expect(postResponse.headers.get('allow')).toBe('GET, HEAD');
  });

  test('has exactly the operations that docs/api.md lists', () => {
    const text = readFileSync(new URL('../../../../docs/api.md', import.meta.url), 'utf8');
    const documentedOperations = [...text.matchAll(/^\| `([A-Z, ]+) (\S+)` \|/gm)].flatMap(
      ([, methods = '', path = '']) =>
        methods
          .split(', ')
          .map((method) => `${method} ${path.replace('…', '/api/v3/accounts/{account_id}')}`),
    );
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      methodsOf(item).map((method) => `${method} ${path}`),
    );
    expect(documentedOperations.sort()).toEqual(described.sort());
  });

  test('is valid OpenAPI 3.1 by an external validator', async () => {
    const { json } = await harness.call('GET', '/openapi.json');
    const validator = new Validator();
    expect(await validator.validate(json)).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  test('has exactly one entry for every mounted endpoint', () => {
    const documented = Object.entries(document.paths).flatMap(([path, item]) =>
      methodsOf(item).map((method) => `${method} ${path.replace(/\/$/, '')}`),
    );
    const mounted = harness.endpoints.map(
      ({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`,
    );
    expect(documented.sort()).toEqual(mounted.sort());
  });

  test('lists exactly the methods that the service accepts on each path, with and without a slash', async () => {
    for (const [path, item] of Object.entries(document.paths)) {
      for (const slash of ['', '/']) {
        const url = `${path.replaceAll(/\{\w+\}/g, '1')}${slash}`;
        const { status, headers } = await harness.call('PATCH', url);
        const allowed = headers
          .get('allow')
          ?.split(', ')
          .filter((method) => method !== 'HEAD');
        expect({ url, status, allowed: allowed?.sort() }).toEqual({
          url,
          status: 405,
          allowed: methodsOf(item).sort(),
        });
      }
    }
  });

  test('declares exactly the parameters of its paths', () => {
    for (const [path, { parameters = [] }] of Object.entries(document.paths)) {
      const declared = parameters.map((parameter) => {
        const name = '$ref' in parameter ? parameter.$ref.split('/').at(-1) : undefined;
        return name === undefined ? '' : `{${document.components.parameters[name]?.name}}`;
      });
      expect({ path, declared }).toEqual({ path, declared: path.match(/\{\w+\}/g) ?? [] });
    }
  });

  test('has unique operation ids and describes every field and parameter', () => {
    const ids: unknown[] = [];
    for (const [path, object] of objectsIn(document)) {
      if ('operationId' in object) ids.push(object.operationId);
      if ('in' in object && 'schema' in object)
        expect([path, object.description]).toEqual([path, expect.any(String)]);
      if (!('properties' in object) || object.type !== 'object') continue;
      for (const [field, schema] of Object.entries(object.properties as Record<string, Schema>)) {
        const described = schema.description ?? schema.$ref;
        expect([`${path}/${field}`, described]).toEqual([`${path}/${field}`, expect.stringMatching(/\S/)]);
      }
    }
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('gives an Idempotency-Key to every POST of an account and to no other operation', () => {
    const $ref = '#/components/parameters/IdempotencyKey';
    for (const [path, item] of Object.entries(document.paths)) {
      for (const method of METHODS) {
        const hasParameter =
          item[method]?.parameters?.some((one) => '$ref' in one && one.$ref === $ref) ?? false;
        const expected = method === 'post' && item.post !== undefined && path.includes('{account_id}');
        expect([method, path, hasParameter]).toEqual([method, path, expected]);
      }
    }
  });

  test('permits no unnamed fields in responses', () => {
    const objectSchemas = [...responseObjects(document)].filter(({ properties }) => properties);
    for (const { additionalProperties, description } of objectSchemas) {
      expect([description, additionalProperties]).toEqual([description, false]);
    }
    expect(objectSchemas.length).toBeGreaterThan(30);
  });
});

/** Yields every object schema of responses and deliveries: all but those that requests name. */
function* responseObjects({ components, paths }: OpenApiDocument): Generator<Schema> {
  const bodies = Object.values(paths).flatMap((item) => METHODS.map((method) => item[method]?.requestBody));
  const mediaTypes: MediaType[] = bodies.flatMap((body) => Object.values(body?.content ?? {}));
  const ofRequests = mediaTypes.map(({ schema }) => schema.$ref?.split('/').at(-1));
  const responseSchemas = Object.entries(components.schemas).filter(([name]) => !ofRequests.includes(name));
  for (const [, schema] of objectsIn([Object.fromEntries(responseSchemas), paths])) {
    if (schema.type === 'object') yield schema as Schema;
  }
}

describe('the examples of the OpenAPI document', () => {
  test('match their schemas', () => {
    let count = 0;
    for (const [path, object] of objectsIn(document)) {
      if ('schema' in object && 'example' in object) {
        const { schema, example } = object as unknown as MediaType;
        expect([path, check(schema, example, 'example')]).toEqual([path, []]);
        count++;
      }
      if (!Array.isArray(object.examples)) continue;
      for (const example of object.examples) {
        expect([path, check(object as Schema, example, 'example')]).toEqual([path, []]);
        count++;
      }
    }
    expect(count).toBeGreaterThan(50);
  });

  test('have valid ids', () => {
    const text = JSON.stringify(document);
    const ids = new Set(text.match(/(?:wsu|wev|act|wdl|wrc)_[0-9A-Za-z]{27}/g));
    const kinds = ['subscription', 'event', 'account', 'delivery', 'recovery'] as const;
    for (const id of ids) expect([id, kinds.some((kind) => isId(kind, id))]).toEqual([id, true]);
    expect(ids.size).toBeGreaterThanOrEqual(5);
  });
});

describe('the payloads of deliveries', () => {
  const { DeliveryPayload } = document.components.schemas as { DeliveryPayload: Schema };
  const subscription = { id: createId('subscription'), name: 'Pager' };

  test('match the schema of their event type and of no other', () => {
    for (const eventType of EVENT_TYPES) {
      const { webhooksID, webhookName, ...event } = PAYLOAD_EXAMPLES[eventType];
      const body = JSON.parse(renderPayload(event as JobRunEvent, subscription));
      expect(check(DeliveryPayload, body, 'payload')).toEqual([]);
      for (const other of EVENT_TYPES) {
        const schema = document.webhooks[other]?.post?.requestBody?.content['application/json']
          ?.schema as Schema;
        expect([eventType, other, check(schema, body, 'payload').length === 0]).toEqual([
          eventType,
          other,
          eventType === other,
        ]);
      }
    }
  });

  test.each(EVENT_TYPES)('match their schema when the test endpoint sends %s', (eventType) => {
    const event = sampleEvent(eventType, { accountId: 1, eventId: createId('event'), now: new Date() });
    expect(check(DeliveryPayload, JSON.parse(renderPayload(event, subscription)), 'payload')).toEqual([]);
  });
});

describe('the OpenAPI document states the limit of the service', () => {
  const { nameCharactersMax, descriptionCharactersMax, jobIdsMax } = SUBSCRIPTION_LIMITS;
  const fields = document.components.schemas.SubscriptionFields as Schema;

  test.each([
    ['name', 'x'.repeat(nameCharactersMax), 'x'.repeat(nameCharactersMax + 1)],
    ['name', 'x', ''],
    ['name', ' x ', ' \t\u00a0 '],
    ['description', 'x'.repeat(descriptionCharactersMax), 'x'.repeat(descriptionCharactersMax + 1)],
    ['event_types', [...EVENT_TYPES], []],
    ['event_types', ['job.run.errored'], ['job.run.errored', 'job.run.errored']],
    ['event_types', ['job.run.errored'], ['job.run.deleted']],
    ['active', false, 'false'],
  ])('for the field %s (%#)', async (field, validValue, invalidValue) => {
    const account = await harness.newAccount();
    for (const [value, allowed] of [
      [validValue, true],
      [invalidValue, false],
    ]) {
      const body = { ...SUBSCRIPTION_FIELDS, [field as string]: value };
      const { token } = account;
      const { status } = await harness.call('POST', account.path('/subscriptions'), { token, body });
      expect(status).toBe(allowed ? 201 : 400);
      expect(check(fields, body, 'body').length === 0).toBe(allowed);
    }
  });

  test('for the number of jobs of a subscription', () => {
    expect(JSON.stringify(fields.properties?.job_ids)).toContain(`At most ${jobIdsMax} `);
  });

  test('for the rate of requests', () => {
    const key = Buffer.alloc(32).toString('base64');
    const required = { DATABASE_URL: 'postgres://db/runhook', QUEUE_URL: 'redis://queue' };
    const { apiRateLimitPerMinute } = readSettings({ ...required, ENCRYPTION_KEYS: `key:${key}` });
    expect(document.info.description).toContain(`to ${apiRateLimitPerMinute.toLocaleString('en')} a minute`);
  });

  test('for the size of a page', async () => {
    const account = await harness.newAccount();
    const { minimum, maximum, default: defaultLimit } = PARAMETERS.Limit.schema;
    const list = async (query: string) =>
      await harness.call('GET', account.path(`/subscriptions${query}`), { token: account.token });
    expect((await list('')).json.extra.filters.limit).toBe(defaultLimit);
    for (const limit of [minimum, maximum]) expect((await list(`?limit=${limit}`)).status).toBe(200);
    for (const limit of [Number(minimum) - 1, Number(maximum) + 1]) {
      expect((await list(`?limit=${limit}`)).status).toBe(400);
    }
  });
});

/** Whether the text has a noncharacter above the basic plane, which the patterns do not exclude. */
const isAboveBasicPlane = (text: string) =>
  Array.from(text).some((one) => one.length === 2 && hasInvalidText(one));

test.each(['', 'u'])(
  'the patterns of configured texts express the rule of the server with the flags "%s"',
  (flags) => {
    const golden = new URL('../../../../packages/contract/golden/texts.json', import.meta.url);
    const { texts } = JSON.parse(readFileSync(golden, 'utf8')) as {
      texts: { name: string; utf16: string }[];
    };
    const patterns = [requiredText(255, '').pattern, requiredName(255, '').pattern, OPTIONAL_NAME_PATTERN];
    let invalid = 0;
    for (const { name, utf16 } of texts) {
      const text = Buffer.from(utf16, 'hex').swap16().toString('utf16le');
      if (text === '' || isAboveBasicPlane(text)) continue;
      if (hasInvalidText(text)) invalid += 1;
      for (const pattern of patterns)
        expect([name, pattern, new RegExp(pattern as string, flags).test(text)]).toEqual([
          name,
          pattern,
          !hasInvalidText(text),
        ]);
    }
    expect(invalid).toBeGreaterThan(5);
  },
);
