import { toProblems, VALIDATION_OPTIONS } from '@runhook/contract';
import type Joi from 'joi';
import { InvalidRequestError } from './errors.ts';

/** Returns the fields of a body. @throws InvalidRequestError with all problems */
export function parseBody<Fields>(schema: Joi.ObjectSchema<Fields>, body: unknown): Fields {
  const { value, error } = schema.validate(body, VALIDATION_OPTIONS);
  if (error) throw new InvalidRequestError(toProblems(error, 'body'));
  return value;
}
