import { openApiDocument } from '../src/http/openapi/document.ts';
import { createAnswerChecker } from './answer-checker.ts';

const check = createAnswerChecker(openApiDocument());

/**
 * `fetch`, for tests of the API: rejects when an answer is not what the OpenAPI document says. Every test's requests
 * should go through it, by `harness.call`, `callApi` or as they are.
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
