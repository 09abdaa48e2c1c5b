import type { components, paths } from './generated/api.ts';

export type { components, paths } from './generated/api.ts';

/** The types of requests and responses, by their names in the OpenAPI document of the API. */
export type Schemas = components['schemas'];

export type Method = 'get' | 'post' | 'put' | 'delete';

/** The paths that support the method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends object ? P : never;
}[keyof paths];

type Json<Content> = Content extends { content: { 'application/json': infer Value } } ? Value : undefined;
type Part<O, Name extends string> = O extends { parameters: { [N in Name]?: infer Value } }
  ? Value
  : undefined;
/** A part of a request that is required, optional or not supported. */
type RequestPart<Name extends string, Value> = [Value] extends [undefined]
  ? { [N in Name]?: never }
  : undefined extends Value
    ? { [N in Name]?: NonNullable<Value> }
    : { [N in Name]: Value };

/** Query parameters; empty ones are omitted. */
export type Query<M extends Method, P extends PathOf<M>> = {
  [N in keyof NonNullable<Part<paths[P][M], 'query'>>]: NonNullable<Part<paths[P][M], 'query'>>[N] | '';
};

/** Values for the placeholders of the path. */
export type PathParameters<M extends Method, P extends PathOf<M>> = Part<paths[P][M], 'path'>;

export type Body<M extends Method, P extends PathOf<M>> = paths[P][M] extends { requestBody?: infer Content }
  ? Json<Content>
  : undefined;

/** All parts of a request except method and path. */
export type RequestParts<M extends Method, P extends PathOf<M>> = RequestPart<'path', PathParameters<M, P>> &
  RequestPart<'body', Body<M, P>> & {
    query?: Query<M, P>;
    headers?: Record<string, string>;
    signal?: AbortSignal | undefined;
  };

/** The envelope of a successful response (docs/contract.md#requests-and-responses). */
export type SuccessEnvelope<M extends Method, P extends PathOf<M>> = paths[P][M] extends {
  responses: infer All;
}
  ? Json<All[keyof All & (200 | 201 | 202)]>
  : never;

/** The `data` of the envelope. */
export type Data<M extends Method, P extends PathOf<M>> =
  SuccessEnvelope<M, P> extends { data: infer Value } ? Value : never;

/** Paths whose response is a page of rows. */
export type ListPath = {
  [P in PathOf<'get'>]: SuccessEnvelope<'get', P> extends {
    data: readonly unknown[];
    extra: { pagination: object };
  }
    ? P
    : never;
}[PathOf<'get'>];

export type Row<P extends ListPath> = Data<'get', P> extends readonly (infer Item)[] ? Item : never;

/** Returns the address of a call, relative to the address of the service; empty query parameters are omitted. */
export function requestPath(
  path: string,
  pathParameters: Readonly<Record<string, unknown>>,
  query: Readonly<Record<string, unknown>>,
): string {
  const filledPath = path.slice(1).replace(/\{(\w+)\}/g, (_, name) => {
    const value = pathParameters[name];
    if (value === undefined) throw new TypeError(`${path} needs ${name}`);
    return encodeURIComponent(String(value));
  });
  const queryEntries = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(
    queryEntries.flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((one): [string, string] => [name, String(one)]),
    ),
  ).toString();
  return search === '' ? filledPath : `${filledPath}?${search}`;
}
