/**
 * The routes of this API family, the administrative API of dbt Cloud, that Runhook does not serve: a client gets a 404
 * that says so instead of one that looks like an unknown id. docs/contract.md#routes-that-are-not-served lists them.
 */
import { NotFoundError } from './errors.ts';

/** Resources below a path; each stands for all routes below it. `{version}` is v2 or v3. */
export const UNSERVED_RESOURCES: Readonly<Record<string, readonly string[]>> = {
  '/api/{version}': ['constants', 'integrations', 'regions', 'users'],
  '/api/{version}/accounts/{account_id}': [
    'adapters',
    'assign-groups',
    'auth-provider',
    'azure-ad-applications',
    'connections',
    'credentials',
    'encryptions',
    'environment-variables',
    'extended-attributes',
    'feature-flag',
    'features',
    'group-permissions',
    'groups',
    'integrations',
    'invites',
    'ip-restrictions',
    'license-maps',
    'licenses',
    'notifications',
    'oauth-configurations',
    'permissions',
    'platform-metadata-credentials',
    'private-endpoints',
    'private-link-endpoints',
    'privatelink-endpoints',
    'repositories',
    'scim-config',
    'semantic-layer-credential-to-service-token-mapping',
    'semantic-layer-credentials',
    'service-tokens',
    'steps',
    'users',
  ],
  '/api/{version}/accounts/{account_id}/environments/{environment_id}': ['model-notifications'],
  '/api/{version}/accounts/{account_id}/projects/{project_id}': [
    'adapters',
    'connections',
    'credentials',
    'environment-variables',
    'extended-attributes',
    'group-permissions',
    'integrations',
    'managed-repositories',
    'profiles',
    'repositories',
    'runs/{run_id}/timing',
    'semantic-layer-configurations',
    'semantic-layer-credentials',
  ],
};

/** Methods of the family on paths that are served with other methods. */
export const UNSERVED_METHODS: Readonly<Record<string, readonly string[]>> = {
  '/api/{version}/accounts/{account_id}/projects': ['POST'],
  '/api/{version}/accounts/{account_id}/projects/{project_id}': ['POST', 'DELETE'],
  '/api/{version}/accounts/{account_id}/environments': ['POST'],
  '/api/{version}/accounts/{account_id}/environments/{environment_id}': ['POST', 'DELETE'],
  '/api/{version}/accounts/{account_id}/projects/{project_id}/environments': ['POST'],
  '/api/{version}/accounts/{account_id}/projects/{project_id}/environments/{environment_id}': [
    'POST',
    'DELETE',
  ],
};

const PLACEHOLDERS: Readonly<Record<string, string>> = { version: 'v[23]' };

const patternOf = (path: string) => path.replaceAll(/\{(\w+)\}/g, (_, name) => PLACEHOLDERS[name] ?? '[^/]+');

const RESOURCES = Object.entries(UNSERVED_RESOURCES).flatMap(([parent, resources]) =>
  resources.map((resource) => ({
    path: `${parent}/${resource}`,
    pattern: new RegExp(`^${patternOf(`${parent}/${resource}`)}(/|$)`),
  })),
);

const METHODS = Object.entries(UNSERVED_METHODS).map(([path, methods]) => ({
  path,
  methods,
  pattern: new RegExp(`^${patternOf(path)}/?$`),
}));

/** Returns the 404 for a path of the API family that is not served; null for any other path. */
export function unservedPathError(method: string, path: string): NotFoundError | null {
  const route = RESOURCES.find(({ pattern }) => pattern.test(path));
  return route === undefined ? null : unservedError(method, route.path);
}

/** Returns the 404 for a method of the API family on a path that is served with other methods; null for any other. */
export function unservedMethodError(method: string, path: string): NotFoundError | null {
  const route = METHODS.find(({ pattern, methods }) => methods.includes(method) && pattern.test(path));
  return route === undefined ? null : unservedError(method, route.path);
}

function unservedError(method: string, path: string): NotFoundError {
  return new NotFoundError(
    `This route of the API family is not served: ${method} ${path}. See /openapi.json for those that are.`,
  );
}
