import type { SeededRandom } from '../../chaos/seeded-random.ts';
import type { Operation } from './operations.ts';
import { createOddBytes, createOddHeader, createOddValue, mutateBody, ODD_TEXTS, pick } from './values.ts';
import type { Party } from './world.ts';

/** A complete request. */
export interface FuzzRequest {
  operation: Operation;
  caller: Party;
  target: Target;
  method: string;
  /** Path with its query. */
  path: string;
  headers: Record<string, string>;
  body: Buffer | null;
  /** Modification of a valid request. */
  kind: Kind;
}

const KINDS = ['valid', 'body', 'bytes', 'header', 'path', 'query', 'method', 'credential'] as const;
export type Kind = (typeof KINDS)[number];

/** Selects the account in the path, and the owner of the other ids. */
export interface Target {
  account: Party;
  ids: Party;
}

/**
 * Creates a valid request for the operation, or one with an error.
 * @param kind any of them when omitted
 */
export function createRequest(
  random: SeededRandom,
  operation: Operation,
  { caller, target, kind = pick(random, KINDS) }: { caller: Party; target: Target; kind?: Kind },
): FuzzRequest {
  const changes = (of: Kind) => kind === of;
  const headers: Record<string, string> = { authorization: `Token ${tokenFor(operation, caller)}` };
  const valid = createBody(operation, { caller, target }, random);
  const body = changes('bytes')
    ? createOddBytes(random)
    : encodeBody(changes('body') ? mutateBody(random, valid) : valid);
  if (body !== null) headers['content-type'] = 'application/json';
  if (operation.method === 'POST' && random.next() < 0.3)
    headers['idempotency-key'] = `k${random.between(0, 50)}`;
  if (changes('credential')) headers.authorization = createOddCredential(random);
  for (let count = changes('header') ? random.between(1, 3) : 0; count > 0; count--) {
    const [name, value] = createOddHeader(random);
    headers[name] = value;
  }
  const method = changes('method') ? pick(random, OTHER_METHODS) : operation.method;
  const path = createPath(operation, method, target, changes('path') ? random : null);
  const query = createQuery(operation, changes('query'), random);
  const sent = hasBody(method) ? body : null;
  return { operation, caller, target, method, path: path + query, headers, body: sent, kind };
}

const OTHER_METHODS = ['PATCH', 'OPTIONS', 'HEAD', 'PUT', 'DELETE'] as const;
const hasBody = (method: string) => method === 'POST' || method === 'PUT' || method === 'PATCH';

/** Returns the user's key for operations of users, and the service token for all others. */
function tokenFor({ path }: Operation, caller: Party): string {
  return path.includes('{account_id}') ? caller.token : caller.apiKey;
}

function createPath(
  { path, parameters }: Operation,
  method: string,
  target: Target,
  random: SeededRandom | null,
): string {
  const names = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
  const isOdd = random && names.length > 0 ? pick(random, names) : null;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = random && name === isOdd ? pick(random, ODD_TEXTS) : selectId(name, method, target);
    return encodedText(value);
  });
  if (random === null || random.next() < 0.7) return filled;
  return pick(random, [
    `${filled}/`,
    filled.replace(/\/$/, ''),
    `${filled}//`,
    filled.toUpperCase(),
    `/${filled}`,
  ]);
}

/** Returns the id for a parameter of a path, or an id that does not exist. */
function selectId(name: string, method: string, { account, ids }: Target): string {
  if (name === 'account_id') return String(account.accountId);
  // The main webhook and the main job are not deleted.
  if (name === 'webhook_id' && method === 'DELETE' && account === ids)
    return account.spareWebhookIds.pop() ?? `wsu_${'0'.repeat(27)}`;
  if (name === 'job_id' && method === 'DELETE' && account === ids)
    return account.spareJobIds.pop() ?? '999999999';
  return String(ids.ids[name] ?? `none_${name}`);
}

function createQuery({ parameters }: Operation, isOdd: boolean, random: SeededRandom): string {
  const queryParameters = parameters.filter((parameter) => parameter.in === 'query');
  const pairs: [string, string][] = [];
  for (const { name, schema } of queryParameters) {
    if (random.next() < 0.6) continue;
    const validValue = pick(random, schema.enum ?? schema.examples ?? [schema.default ?? '1']);
    pairs.push([name, isOdd ? pick(random, ODD_TEXTS) : String(validValue)]);
  }
  if (isOdd) {
    const name = pick(random, [
      ...queryParameters.map((parameter) => parameter.name),
      'limit',
      'offset',
      '__proto__',
      'a[b]',
    ]);
    pairs.push([name, pick(random, ODD_TEXTS)], [name, '1']);
  }
  if (pairs.length === 0) return '';
  return `?${pairs.map(([name, value]) => `${encodedText(name)}=${encodedText(value)}`).join('&')}`;
}

/** Encodes text for a URL, unless it is already encoded. Half a surrogate pair cannot be sent. */
function encodedText(text: string): string {
  return text.startsWith('%') ? text : encodeURIComponent(Buffer.from(text).toString());
}

/** Returns the example of the document with ids and values that exist. */
function createBody(
  { example }: Operation,
  { caller, target }: { caller: Party; target: Target },
  random: SeededRandom,
): unknown {
  if (typeof example !== 'object' || example === null)
    return random.next() < 0.1 ? createOddValue(random) : null;
  const { name } = caller.body;
  const defaults: Record<string, unknown> = {
    ...target.ids.body,
    name,
    run_id: random.between(1, 1_000_000),
  };
  const fields = Object.entries(example).map(([name, value]) => [name, defaults[name] ?? value]);
  return Object.fromEntries(fields);
}

/** Returns the body as JSON, or null for a request without a body. */
function encodeBody(value: unknown): Buffer | null {
  return value === null ? null : Buffer.from(JSON.stringify(value));
}

function createOddCredential(random: SeededRandom): string {
  const text = pick(random, ['Token', 'Bearer', 'Basic', '']);
  const value = pick(random, [
    '',
    'x',
    `rhu_${'0'.repeat(49)}`,
    `rhs_${'z'.repeat(49)}`,
    'a b',
    'x'.repeat(3_000),
  ]);
  return `${text} ${value}`;
}
