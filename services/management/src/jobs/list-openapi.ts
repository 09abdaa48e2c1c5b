/** Parameters of the OpenAPI document that the lists of jobs, projects and environments share. */
import type { Parameter } from '../http/openapi/field-schemas.ts';
import { listParameter, queryParameter } from '../http/openapi/parameters.ts';
import { SEARCH_CHARACTERS_MAX } from '../http/query-parameters.ts';

export const NAME_FILTERS: Parameter[] = [
  queryParameter('name__icontains', 'Only rows that have this text in their name, case-insensitive.', {
    type: 'string',
    maxLength: SEARCH_CHARACTERS_MAX,
  }),
  queryParameter('name', 'Only rows with exactly this name.', {
    type: 'string',
    maxLength: SEARCH_CHARACTERS_MAX,
  }),
];

export const STATE_FILTER = queryParameter('state', '1 (default): not deleted; 2: deleted.', {
  type: 'integer',
  enum: [1, 2],
});

export function idsFilter(name: string, description: string): Parameter {
  return listParameter(name, description, '[3,4]');
}
