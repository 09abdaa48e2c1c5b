/** A parameter of the OpenAPI document, as far as it says what to send. */
export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  schema: { type?: string; enum?: unknown[]; examples?: unknown[]; default?: unknown };
}

/** One method of one path. */
export interface Operation {
  method: string;
  /** With its parameters in braces, and a slash at its end where clients write one. */
  path: string;
  parameters: Parameter[];
  /** What the document shows as a good body; null where none is needed. */
  example: unknown;
}

interface Document {
  paths: Record<string, Record<string, unknown>>;
  components: { parameters: Record<string, Parameter> };
}

interface DocumentedOperation {
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { content: { 'application/json': { example?: unknown } } };
}

/** Every method of every path of the running service's own document, so that no route is left out. */
export async function readOperations(origin: string): Promise<Operation[]> {
  const document = (await (await fetch(`${origin}/openapi.json`)).json()) as Document;
  const parameterOf = (given: Parameter | { $ref: string }): Parameter => {
    if (!('$ref' in given)) return given;
    const found = document.components.parameters[given.$ref.split('/').at(-1) ?? ''];
    if (!found) throw new Error(`${given.$ref} is not in the document`);
    return found;
  };
  return Object.entries(document.paths).flatMap(([path, item]) => {
    const ofPath = (item.parameters ?? []) as (Parameter | { $ref: string })[];
    return Object.entries(item)
      .filter(([method]) => method !== 'parameters')
      .map(([method, value]) => {
        const operation = value as DocumentedOperation;
        return {
          method: method.toUpperCase(),
          path,
          parameters: [...ofPath, ...(operation.parameters ?? [])].map(parameterOf),
          example: operation.requestBody?.content['application/json'].example ?? null,
        };
      });
  });
}
