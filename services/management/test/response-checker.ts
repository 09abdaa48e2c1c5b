import { dereference, type Schema as JsonSchema, validate } from '@cfworker/json-schema';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type {
  Response as DocumentedResponse,
  OpenApiDocument,
  Operation,
  OperationMethod,
  PathItem,
  Schema,
} from '../src/http/openapi/field-schemas.ts';
import { microsFromText } from '../src/http/query-parameters.ts';
import { unservedMethodError } from '../src/http/unserved-routes.ts';

/** Base URI of the document in both validators. */
const DOCUMENT = 'https://openapi.invalid/';

/** A request and its response, as seen by a client. */
export interface Exchange {
  method: string;
  /** Path with the query, if there is one. */
  path: string;
  /** JSON text, if the request had a body. */
  requestBody?: string | undefined;
  status: number;
  headers: Headers;
  body: string;
}

/** Returns the differences between an exchange and the document as readable lines; null if there are none. */
export type ResponseChecker = (exchange: Exchange) => string | null;

/** Returns the problems of a value, one per line. @param pathPrefix name of the value */
export type SchemaChecker = (schema: Schema, value: unknown, pathPrefix: string) => string[];

/**
 * Compares responses of the API with its OpenAPI document: the operation must list the status, headers and body must be
 * as described, and an accepted request must be valid. A path below `/api/` without an entry must be a 404, another
 * method of a listed path a 405, or a 404 if the API family has it. A 500 is always a problem.
 */
export function createResponseChecker(document: OpenApiDocument): ResponseChecker {
  const check = createSchemaChecker(document);

  function problemsOf(exchange: Exchange): string[] {
    const { method, status, headers, body, requestBody } = exchange;
    if (status === 500) return ['status 500: a defect of the service'];
    const { operation, response, listed } = documented(document, exchange);
    if (!response) return [`the status is not listed; ${listed}`];
    const problems = headerProblems(response, headers);
    const schema = response.content?.['application/json']?.schema;
    if (method === 'HEAD' || !schema) return problems;
    const parsedBody = parsed(body);
    problems.push(...check(schema, parsedBody, 'body'));
    const code = (parsedBody as { status?: { code?: unknown } } | null | undefined)?.status?.code;
    if (code !== status) problems.push(`body/status/code is ${code}`);
    const requestSchema = operation?.requestBody?.content['application/json']?.schema;
    if (status >= 300 || !requestSchema || requestBody === undefined) return problems;
    const ofRequest = check(
      requestSchema,
      toDocumented(parsed(requestBody), parsedBody),
      'body of the request',
    );
    return [...problems, ...ofRequest.map((problem) => `accepted, though ${problem}`)];
  }

  return (exchange) => {
    const { method, path, status, body } = exchange;
    if (!pathnameOf(path).startsWith('/api/')) return null;
    const problems = problemsOf(exchange);
    if (problems.length === 0) return null;
    const heading = `${method} ${path} got the response ${status}, which is not what the OpenAPI document says:`;
    return [heading, ...problems.map((problem) => `  ${problem}`), body.slice(0, 2_000)].join('\n');
  };
}

/**
 * Converts a body to the format of generated clients. The API accepts more forms, which the descriptions mention: ids
 * of jobs as digits, a single one, or null, and other formats of timestamps. Rejected events are removed.
 */
function toDocumented(body: unknown, parsedBody: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const documented: Record<string, unknown> = { ...body };
  const { job_ids: jobIds } = documented;
  if (jobIds !== undefined) documented.job_ids = (jobIds === null ? [] : [jobIds].flat()).map(toInteger);
  for (const name of ['since', 'until'] as const) {
    const { [name]: time } = documented;
    const micros = typeof time === 'string' ? microsFromText(time) : null;
    if (micros !== null) documented[name] = new Date(Number(micros) / 1_000).toISOString();
    if (time === null) delete documented[name];
  }
  const verdicts = (parsedBody as { data?: { events?: { verdict?: string }[] } | null } | null)?.data?.events;
  const { events } = documented;
  if (Array.isArray(events) && Array.isArray(verdicts))
    documented.events = events.filter((_, index) => verdicts[index]?.verdict !== 'rejected');
  return documented;
}

function toInteger(id: unknown): unknown {
  return typeof id === 'string' && /^\d+$/.test(id) ? Number(id) : id;
}

/**
 * Validates against schemas of the document. Ajv compiles each schema, which takes half a second of CPU in each test
 * file that calls the API. So a validator that compiles nothing decides, and Ajv only describes what it rejects.
 */
function createSchemaChecker(document: OpenApiDocument): SchemaChecker {
  const lookup = dereference({ $id: DOCUMENT, $defs: atRoot(document.components.schemas) });
  const cachedSchemas = new Map<Schema, JsonSchema>();
  const add = (schema: Schema): JsonSchema => {
    const added = atRoot(schema) as JsonSchema;
    dereference(added, lookup, new URL(`schema-${cachedSchemas.size}`, DOCUMENT));
    cachedSchemas.set(schema, added);
    return added;
  };
  let describe: SchemaChecker | undefined;
  return (schema, value, pathPrefix) => {
    if (validate(value, cachedSchemas.get(schema) ?? add(schema), '2020-12', lookup, true).valid) return [];
    describe ??= createStrictSchemaChecker(document);
    return describe(schema, value, pathPrefix);
  };
}

/** Validates strictly, by compiling: an unknown keyword is an error. */
export function createStrictSchemaChecker(document: OpenApiDocument): SchemaChecker {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true, verbose: true });
  addFormats.default(ajv);
  ajv.addVocabulary(['discriminator']);
  ajv.addSchema({ $id: DOCUMENT, $defs: atRoot(document.components.schemas) });
  const validators = new Map<Schema, ReturnType<typeof ajv.compile>>();
  return (schema, value, pathPrefix) => {
    const validate = validators.get(schema) ?? ajv.compile(atRoot(schema));
    validators.set(schema, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message, params, data }) => {
      const culprit = params.additionalProperty ?? JSON.stringify(data)?.slice(0, 200);
      return `${pathPrefix}${instancePath} ${message}: ${culprit}`;
    });
  };
}

/** Rewrites references to schemas to the location that the validator uses. */
function atRoot<T extends object>(part: T): T {
  return JSON.parse(JSON.stringify(part).replaceAll('"#/components/schemas/', `"${DOCUMENT}#/$defs/`));
}

interface Documented {
  operation?: Operation;
  /** Undefined if the document does not list the status. */
  response?: DocumentedResponse | undefined;
  /** Describes the listed statuses. */
  listed: string;
}

function documented(document: OpenApiDocument, { method, path, status }: Exchange): Documented {
  const { responses } = document.components;
  const item = entryOf(document, pathnameOf(path));
  const operation = item?.[(method === 'HEAD' ? 'get' : method.toLowerCase()) as OperationMethod];
  if (!item)
    return { response: status === 404 ? responses.NotFound : undefined, listed: 'the path has no entry' };
  if (!operation) {
    const isUnserved = unservedMethodError(method, pathnameOf(path)) !== null;
    const response =
      isUnserved && status === 404
        ? responses.NotFound
        : status === 405
          ? responses.MethodNotAllowed
          : undefined;
    return { response, listed: 'the path has no such method' };
  }
  const found = operation.responses[status];
  const response = found && '$ref' in found ? responses[found.$ref.split('/').at(-1) ?? ''] : found;
  return { operation, response, listed: `these are: ${Object.keys(operation.responses).join(', ')}` };
}

/** Returns the entry whose template matches the path, with or without a trailing slash; the most literal one wins. */
function entryOf({ paths }: OpenApiDocument, pathname: string): PathItem | undefined {
  const pattern = (template: string) =>
    new RegExp(`^${template.replace(/\/$/, '').replaceAll(/\{\w+\}/g, '[^/]+')}/?$`);
  const candidates = Object.entries(paths).filter(([template]) => pattern(template).test(pathname));
  return candidates.sort(([one], [other]) => one.split('{').length - other.split('{').length)[0]?.[1];
}

function headerProblems({ headers = {}, content }: DocumentedResponse, headersSent: Headers): string[] {
  const problems = Object.entries(headers).flatMap(([name, { required, schema }]) => {
    const value = headersSent.get(name);
    if (value === null) return required ? [`the header ${name} is missing`] : [];
    const isMatch = schema.pattern === undefined || new RegExp(schema.pattern).test(value);
    return isMatch ? [] : [`the header ${name} is ${value}`];
  });
  const type = headersSent.get('content-type');
  // A redirect has no content.
  const isDocumented =
    content === undefined ? type === null : Object.keys(content).some((one) => type?.startsWith(one));
  if (!isDocumented) problems.push(`the content type is ${type}`);
  return problems;
}

function pathnameOf(path: string): string {
  return new URL(path, 'http://localhost').pathname;
}

/** Returns null for text that is not JSON, because no schema of the document allows null. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
