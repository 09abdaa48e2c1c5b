import { schemaRef } from './object-schemas.ts';
import type { RequestBody } from './openapi-types.ts';

/** The JSON body that an operation needs. @param schema name of a schema of `components` */
export function requestBody(schema: string, description: string, example: unknown): RequestBody {
  return {
    description,
    required: true,
    content: { 'application/json': { schema: schemaRef(schema), example } },
  };
}
