import type { Problem } from '@runhook/contract';
import { LIMIT_MAX } from '../../query-parameters.ts';
import { count, text } from '../field-schemas.ts';
import { answerObject, schemaRef } from '../object-schemas.ts';
import type { Schema } from '../openapi-types.ts';

/** Spec, section 2.2, and DESIGN, section 4, "Errors". */
export const envelopeSchemas: Record<string, Schema> = {
  PageExtra: answerObject<{ pagination: object; filters: object }>('Where in the list this page is.', {
    pagination: answerObject<{ total_count: number; count: number }>('How much there is.', {
      total_count: count('How many match in all: the end of the list for whoever pages by `offset`.'),
      count: count('How many are in this answer.'),
    }),
    filters: answerObject<{ offset: number; limit: number }>('What was applied.', {
      offset: count('How many were skipped.'),
      limit: { type: 'integer', minimum: 1, maximum: LIMIT_MAX, description: 'How many were asked for.' },
    }),
  }),

  FieldError: answerObject<Problem>('What is wrong with one field of a request.', {
    field: {
      type: 'string',
      description:
        'Path of the field in the body, with dots (`event_types.0`), or the name of a parameter or header; `body` for the whole.',
      examples: ['client_url'],
    },
    message: {
      type: 'string',
      description: 'What is wrong with it, without its name.',
      examples: ['must be an absolute http or https URL'],
    },
  }),

  Failure: answerObject<{ status: object; data: null }>('The answer to a call that did not succeed.', {
    status: answerObject<{
      code: number;
      is_success: boolean;
      user_message: string;
      developer_message: string;
      errors?: Problem[];
    }>(
      'What went wrong.',
      {
        code: { type: 'integer', minimum: 400, maximum: 599, description: 'The HTTP status.' },
        is_success: { type: 'boolean', const: false, description: 'Always false here.' },
        user_message: text('What went wrong, for people.', { minLength: 1 }),
        developer_message: text(
          'What helps to mend it, for instance one line per invalid field. May be empty.',
        ),
        errors: {
          type: 'array',
          items: schemaRef('FieldError'),
          minItems: 1,
          description: 'Of a 400, and absent from others: what is wrong, an entry for every invalid field.',
        },
      },
      ['errors'],
    ),
    data: { type: 'null', description: 'Nothing.' },
  }),
};

/** A whole answer to a call that succeeded: `data` in its envelope. `list` adds the `extra` of a page. */
export function envelope(code: number, data: Schema, kind: 'single' | 'list' | 'deleted' = 'single'): Schema {
  const statusCode: Schema = { type: 'integer', const: code, description: 'The HTTP status.' };
  const status =
    kind === 'deleted'
      ? answerObject<{ code: number; is_success: true }>('The outcome.', {
          code: statusCode,
          is_success: { type: 'boolean', const: true, description: 'It is gone.' },
        })
      : answerObject<{ code: number }>('The outcome.', { code: statusCode });
  return kind === 'list'
    ? answerObject<{ data: unknown[]; status: object; extra: object }>('A page of a list.', {
        data: { type: 'array', items: data, description: 'The page.' },
        status,
        extra: schemaRef('PageExtra'),
      })
    : answerObject<{ data: object; status: object }>('The envelope.', { data, status });
}
