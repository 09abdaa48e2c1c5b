/** The part of a parameter in the OpenAPI document that determines its value. */
export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  schema: { type?: string; enum?: unknown[]; examples?: unknown[]; default?: unknown };
}

/** An operation of the API: one method of one path. */
export interface Operation {
  method: string;
  /** Path with its parameters in braces, and with a final slash if clients write one. */
  path: string;
  parameters: Parameter[];
  /** Example of a valid JSON body in the document; null if none is needed. */
  example: unknown;
}

interface Document {
  paths: Record<string, Record<string, unknown>>;
  components: { parameters: Record<string, Parameter> };
}

interface DocumentedOperation {
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { content: { 'application/json'?: { example?: unknown } } };
}

/** Reads all operations from the document of the running service, so that no route is omitted. */
export async function readOperations(origin: string): Promise<Operation[]> {
  const document = (await (await fetch(`${origin}/openapi.json`)).json()) as Document;
  const parameterOf = (parameter: Parameter | { $ref: string }): Parameter => {
    if (!('$ref' in parameter)) return parameter;
    const found = document.components.parameters[parameter.$ref.split('/').at(-1) ?? ''];
    if (!found) throw new Error(`${parameter.$ref} is not in the document`);
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
          example: operation.requestBody?.content['application/json']?.example ?? null,
        };
      });
  });
}
