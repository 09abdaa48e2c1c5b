import type { Header, Operation, Response } from './openapi-types.ts';
import { parameter } from './parameters.ts';
import { failure, failureBecause } from './responses.ts';

const RUNNING = 'The first request with this `Idempotency-Key` is still running.';

const IDEMPOTENT_REPLAY: Record<string, Header> = {
  'Idempotent-Replay': {
    description: 'There, and `true`, when this is the answer to an earlier request with the same key.',
    required: false,
    schema: { type: 'string', pattern: '^true$' },
  },
};

/** An operation that takes an `Idempotency-Key`: every POST that concerns an account. */
export function keyed(operation: Operation): Operation {
  const { parameters = [], responses } = operation;
  const described = Object.entries(responses).map(([code, response]) => {
    if ('$ref' in response) return [code, response];
    if (Number(code) < 300)
      return [code, { ...response, headers: { ...response.headers, ...IDEMPOTENT_REPLAY } }];
    return [
      code,
      code === '409' ? { ...response, description: `${response.description} ${RUNNING}` } : response,
    ];
  });
  const conflict: Response = failureBecause(
    409,
    RUNNING,
    'The first request with this Idempotency-Key is still running.',
  );
  return {
    ...operation,
    parameters: [...parameters, parameter('IdempotencyKey')],
    responses: { 409: conflict, ...Object.fromEntries(described), 422: failure(422) },
  };
}
