import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  UNSERVED_METHODS,
  UNSERVED_RESOURCES,
  unservedMethodError,
  unservedPathError,
} from '../../src/http/unserved-routes.ts';
import { type Harness, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
});
afterAll(() => harness.close());

const message = (route: string) =>
  `This route of the API family is not served: ${route}. See /openapi.json for those that are.`;

test.each([
  ['GET', '/api/v3/accounts/1/connections/', '/accounts/{account_id}/connections'],
  ['POST', '/api/v2/accounts/1/notifications/7', '/accounts/{account_id}/notifications'],
  [
    'GET',
    '/api/v3/accounts/1/projects/2/repositories',
    '/accounts/{account_id}/projects/{project_id}/repositories',
  ],
  ['GET', '/api/v2/accounts/1/users/', '/accounts/{account_id}/users'],
  ['DELETE', '/api/v3/accounts/1/projects/2/', '/accounts/{account_id}/projects/{project_id}'],
  ['POST', '/api/v3/accounts/1/projects', '/accounts/{account_id}/projects'],
  ['DELETE', '/api/v3/accounts/1/environments/2/', '/accounts/{account_id}/environments/{environment_id}'],
])('%s %s is a 404 that says that the route is not served', async (method, path, route) => {
  const { status, json } = await harness.call(method, path.replace('/1/', `/${account.id}/`), {
    token: account.token,
  });
  expect({ status, message: json.status.user_message }).toEqual({
    status: 404,
    message: message(`${method} /api/{version}${route}`),
  });
});

test('other paths and methods keep their errors', async () => {
  const { token } = account;
  for (const path of ['connections', 'users-of-mine', 'projects/1/unknown'])
    expect(
      (await harness.call('GET', `/api/v1/accounts/${account.id}/${path}`, { token })).json.status
        .user_message,
    ).toBe('Not found.');
  expect((await harness.call('PUT', `/api/v3/accounts/${account.id}/projects`, { token })).status).toBe(405);
  expect((await harness.call('GET', '/api/v2/users/7/apikey', { token })).status).toBe(405);
});

test('no method of a served route is listed', () => {
  for (const { method, path } of harness.endpoints)
    expect([method, path, unservedMethodError(method, path.replaceAll(/:\w+/g, '1'))]).toEqual([
      method,
      path,
      null,
    ]);
});

test('docs/contract.md lists them', () => {
  const text = readFileSync(new URL('../../../../docs/contract.md', import.meta.url), 'utf8');
  const section = text.split('### Routes that are not served')[1]?.split('\n#')[0] ?? '';
  const documented = [...section.matchAll(/`([\w{}/-]+)`/g)].map(([, name]) => name);
  const listed = Object.values(UNSERVED_RESOURCES).flat();
  expect([...new Set(documented)].sort()).toEqual([...new Set(listed)].sort());
  expect(Object.keys(UNSERVED_METHODS)).toHaveLength(6);
  expect(unservedPathError('GET', '/api/v2/accounts/1/connections')).not.toBeNull();
});
