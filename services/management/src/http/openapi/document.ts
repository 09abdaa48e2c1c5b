import { releaseVersion } from '@runhook/runtime';
import { artifactPaths, artifactSchemas } from '../../artifacts/openapi.ts';
import { auditPaths, auditSchemas } from '../../audit/openapi.ts';
import { accountLogPaths, accountLogSchemas } from '../../deliveries/account-log-openapi.ts';
import { incidentPaths, incidentSchemas } from '../../deliveries/incidents-openapi.ts';
import { deliveryPaths, deliverySchemas } from '../../deliveries/openapi.ts';
import { previewPaths, previewSchemas } from '../../deliveries/preview-openapi.ts';
import { recoveryPaths, recoverySchemas } from '../../deliveries/recover-openapi.ts';
import { serviceStatePaths, serviceStateSchemas } from '../../deliveries/service-state-openapi.ts';
import { statisticsPaths, statisticsSchemas } from '../../deliveries/statistics-openapi.ts';
import { unnotifiedPaths, unnotifiedSchemas } from '../../deliveries/unnotified-openapi.ts';
import { identityPaths, identitySchemas } from '../../identity/openapi.ts';
import { tokenPaths, tokenSchemas } from '../../identity/tokens-openapi.ts';
import { jobPaths, jobSchemas } from '../../jobs/openapi.ts';
import { projectPaths, projectSchemas } from '../../jobs/projects-openapi.ts';
import { oidcPaths, oidcSchemas } from '../../oidc/openapi.ts';
import { claimPaths, claimSchemas } from '../../runs/claim-openapi.ts';
import { runPaths } from '../../runs/openapi.ts';
import { publishPaths, publishSchemas } from '../../runs/publish-openapi.ts';
import { runSchemas } from '../../runs/schemas-openapi.ts';
import { runStepPaths, runStepSchemas } from '../../runs/step-openapi.ts';
import { triggerPaths, triggerSchemas } from '../../runs/trigger-openapi.ts';
import { SESSION_COOKIE } from '../../sessions/console-sessions.ts';
import { sessionPaths, sessionSchemas } from '../../sessions/openapi.ts';
import { ownSessionPaths, ownSessionSchemas } from '../../sessions/own-sessions-openapi.ts';
import { changesPaths } from '../../subscriptions/changes-openapi.ts';
import { duplicatePaths, duplicateSchemas } from '../../subscriptions/duplicate-openapi.ts';
import { subscriptionPaths, subscriptionSchemas } from '../../subscriptions/openapi.ts';
import { rotationPaths } from '../../subscriptions/rotation-openapi.ts';
import { testPaths, testSchemas } from '../../subscriptions/test-openapi.ts';
import type { OpenApiDocument, Paths, Schema, SecurityRequirement, SecurityScheme } from './field-schemas.ts';
import { PARAMETERS } from './parameters.ts';
import { envelopeSchemas, RESPONSES } from './responses.ts';
import { withV2Status } from './v2-status.ts';
import { payloadSchemas, WEBHOOKS } from './webhooks.ts';

const SCHEMAS: Record<string, Schema> = {
  ...subscriptionSchemas,
  ...duplicateSchemas,
  ...testSchemas,
  ...previewSchemas,
  ...deliverySchemas,
  ...accountLogSchemas,
  ...unnotifiedSchemas,
  ...recoverySchemas,
  ...statisticsSchemas,
  ...incidentSchemas,
  ...serviceStateSchemas,
  ...jobSchemas,
  ...projectSchemas,
  ...runSchemas,
  ...triggerSchemas,
  ...claimSchemas,
  ...runStepSchemas,
  ...artifactSchemas,
  ...publishSchemas,
  ...identitySchemas,
  ...tokenSchemas,
  ...sessionSchemas,
  ...ownSessionSchemas,
  ...oidcSchemas,
  ...auditSchemas,
  ...payloadSchemas,
  ...envelopeSchemas,
};

const SECURITY_SCHEMES: Record<string, SecurityScheme> = {
  token: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description:
      'A user’s API key (`rhu_…`) or an account’s service token (`rhs_…`), as `Token <key>`. Clients that send the value literally must include the word `Token` and a space before the key.',
  },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The same credential as `Bearer <key>`; both are equivalent.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description:
      'The session of the console, with the permissions of its user. A request that changes anything, or tests an endpoint, must come from a page of the console: with `Sec-Fetch-Site: same-origin`, or an `Origin` that names the host of the request. `Authorization` takes precedence. With an https `PUBLIC_URL`, the name of the cookie begins with `__Host-`.',
  },
  deliverySignature: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description:
      'For receivers of deliveries: the lowercase hexadecimal HMAC-SHA256 of the raw body; the key is the whole text of the webhook’s `hmac_secret`. Compute it over the received bytes, and reject a request whose signature differs.',
  },
};

/** Alternative credentials of every operation that does not override them. */
const CALLER: SecurityRequirement[] = [{ token: [] }, { bearer: [] }, { session: [] }];

/** Entries of all mounted endpoints; a test compares them with the endpoints. */
const PATHS: Paths = withV2Status({
  ...subscriptionPaths,
  ...rotationPaths,
  ...duplicatePaths,
  ...testPaths,
  ...previewPaths,
  ...deliveryPaths,
  ...accountLogPaths,
  ...unnotifiedPaths,
  ...changesPaths,
  ...statisticsPaths,
  ...incidentPaths,
  ...serviceStatePaths,
  ...recoveryPaths,
  ...jobPaths,
  ...projectPaths,
  ...runPaths,
  ...triggerPaths,
  ...claimPaths,
  ...runStepPaths,
  ...artifactPaths,
  ...publishPaths,
  ...identityPaths,
  ...tokenPaths,
  ...sessionPaths,
  ...ownSessionPaths,
  ...oidcPaths,
  ...auditPaths,
});

const DESCRIPTION = `Runhook notifies other systems of job runs: it sends a signed HTTP POST to every matching endpoint, retries failed attempts, and stores a log of each delivery.

**Responses** have one envelope: \`data\` and \`status.code\`, which is the HTTP status (version 2 adds \`is_success\` and both messages); lists add \`extra\`. An error has \`data: null\`, and in \`status\` also \`is_success: false\`, a \`user_message\` and a \`developer_message\`; a 400 adds \`errors\`, an entry for each invalid field. Every response has an \`x-request-id\`, which the request may supply. Long responses to a GET are compressed by \`br\` or \`gzip\` if \`Accept-Encoding\` allows it, except those with a secret and streams.

**Paths** work with and without a trailing slash. An unknown path is a 404, another method of a known path a 405 with \`Allow\`, both in the envelope; \`HEAD\` is \`GET\` without the body.

**Requests** have JSON in UTF-8. Unknown fields are ignored. An unknown query parameter is a 400 that names it; every list accepts an empty \`include_related\`. A 415 of a compressed body has \`Accept-Encoding\`. A request that is not valid HTTP/1.1, or does not have exactly one host, is a 400, headers of more than 16 KiB are a 431, another \`Expect\` than \`100-continue\` is a 417, all in the envelope.

**Ids and times** of webhooks, deliveries and audit entries are strings: times are microseconds since the epoch, as digits. All others have integer ids and ISO 8601 times.

**Rate limit**: requests of one account are limited, by default to 5,000 a minute; those about jobs and runs do not count. Beyond that, a request gets a 429 with \`Retry-After\`.`;

export const CONTACT = { name: 'The operator of this service' };
export const LICENSE = { name: 'Apache License 2.0', identifier: 'Apache-2.0' };

/** Returns the API in OpenAPI 3.1, as served at `/openapi.json`. @param serverUrl scheme and host of the service */
export function openApiDocument(serverUrl = '/'): OpenApiDocument {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Runhook',
      version: releaseVersion(),
      summary: 'Webhooks for events of job runs, their deliveries, and API keys.',
      description: DESCRIPTION,
      contact: CONTACT,
      license: LICENSE,
    },
    servers: [{ url: serverUrl, description: 'The server of this document.' }],
    security: CALLER,
    tags: [
      { name: 'Webhooks', description: 'Subscriptions: which events of which jobs go to which endpoint.' },
      { name: 'Deliveries', description: 'The log of deliveries, and redelivery.' },
      { name: 'Jobs and runs', description: 'Reports of job runners.' },
      {
        name: 'Accounts and users',
        description: 'The caller, API keys, and the session of the console.',
      },
      { name: 'Received by endpoints', description: 'Requests that Runhook sends to endpoints.' },
    ],
    paths: PATHS,
    webhooks: WEBHOOKS,
    components: {
      schemas: SCHEMAS,
      parameters: PARAMETERS,
      responses: RESPONSES,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}
