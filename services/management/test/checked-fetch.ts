import { openApiDocument } from '../src/http/openapi/document.ts';
import { createResponseChecker } from './response-checker.ts';

const check = createResponseChecker(openApiDocument());

/**
 * Rejects if a response does not match the OpenAPI document. Every request of a test should use it, directly, by
 * `harness.call` or by `callApi`.
 */
export const checkedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const { pathname, search } = new URL(input instanceof Request ? input.url : input);
  const problem = check({
    method: (init?.method ?? 'GET').toUpperCase(),
    path: pathname + search,
    requestBody: typeof init?.body === 'string' ? init.body : undefined,
    status: response.status,
    headers: response.headers,
    body: await response.clone().text(),
  });
  if (problem !== null) throw new Error(problem);
  return response;
};
