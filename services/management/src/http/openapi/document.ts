import { releaseVersion } from '@runhook/runtime';
import { auditPaths, auditSchemas } from '../../audit/openapi.ts';
import { accountLogPaths, accountLogSchemas } from '../../deliveries/account-log-openapi.ts';
import { incidentPaths, incidentSchemas } from '../../deliveries/incidents-openapi.ts';
import { deliveryPaths, deliverySchemas } from '../../deliveries/openapi.ts';
import { recoveryPaths, recoverySchemas } from '../../deliveries/recover-openapi.ts';
import { serviceStatePaths, serviceStateSchemas } from '../../deliveries/service-state-openapi.ts';
import { statisticsPaths, statisticsSchemas } from '../../deliveries/statistics-openapi.ts';
import { identityPaths, identitySchemas } from '../../identity/openapi.ts';
import { jobPaths, jobSchemas } from '../../jobs/openapi.ts';
import { projectPaths, projectSchemas } from '../../jobs/projects-openapi.ts';
import { runPaths, runSchemas } from '../../runs/openapi.ts';
import { publishPaths, publishSchemas } from '../../runs/publish-openapi.ts';
import { SESSION_COOKIE } from '../../sessions/console-sessions.ts';
import { sessionPaths, sessionSchemas } from '../../sessions/openapi.ts';
import { changesPaths } from '../../subscriptions/changes-openapi.ts';
import { subscriptionPaths, subscriptionSchemas } from '../../subscriptions/openapi.ts';
import { testPaths, testSchemas } from '../../subscriptions/test-openapi.ts';
import type { OpenApiDocument, Paths, Schema, SecurityRequirement, SecurityScheme } from './field-schemas.ts';
import { PARAMETERS } from './parameters.ts';
import { envelopeSchemas, RESPONSES } from './responses.ts';
import { payloadSchemas, WEBHOOKS } from './webhooks.ts';

/** All named schemas. */
const SCHEMAS: Record<string, Schema> = {
  ...subscriptionSchemas,
  ...testSchemas,
  ...deliverySchemas,
  ...accountLogSchemas,
  ...recoverySchemas,
  ...statisticsSchemas,
  ...incidentSchemas,
  ...serviceStateSchemas,
  ...jobSchemas,
  ...projectSchemas,
  ...runSchemas,
  ...publishSchemas,
  ...identitySchemas,
  ...sessionSchemas,
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
      'A user’s API key (`rhu_…`) or a service token (`rhs_…`) of an account, as `Token <key>`. Clients that take this scheme literally need the word `Token` and a space before the key.',
  },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The same credential as `Bearer <key>`; both mean the same.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description:
      'The console’s session, with the rights of its user. Whatever changes something, and the test of an endpoint, must come from the console’s own pages: with `Sec-Fetch-Site: same-origin`, or an `Origin` that names the host of the request. A request that has `Authorization` too is judged by that.',
  },
  deliverySignature: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description:
      'Of deliveries, for receivers: the lower-case hexadecimal HMAC-SHA256 of the raw body, keyed with the whole text of the webhook’s `hmac_secret`. Compute it over the body as it came and refuse what differs.',
  },
};

/** Alternative credentials of every operation that does not override them. */
const CALLER: SecurityRequirement[] = [{ token: [] }, { bearer: [] }, { session: [] }];

/** Entries of all mounted endpoints; a test compares the two. */
const PATHS: Paths = {
  ...subscriptionPaths,
  ...testPaths,
  ...deliveryPaths,
  ...accountLogPaths,
  ...changesPaths,
  ...statisticsPaths,
  ...incidentPaths,
  ...serviceStatePaths,
  ...recoveryPaths,
  ...jobPaths,
  ...projectPaths,
  ...runPaths,
  ...publishPaths,
  ...identityPaths,
  ...sessionPaths,
  ...auditPaths,
};

const DESCRIPTION = `Runhook tells other systems what happened to a job run: it sends a signed HTTP POST to every endpoint that subscribed, tries the ones that fail again, and keeps a log of each delivery.

**Answers** come in one envelope: \`data\` and \`status.code\`, which is the HTTP status; lists add \`extra\`. A refusal has \`data: null\`, and in \`status\` also \`is_success: false\`, a \`user_message\` and a \`developer_message\`; a 400 adds \`errors\`, an entry for every invalid field. Every answer has an \`x-request-id\`, which a request may bring.

**Paths** work with and without a slash at the end. A path that is not listed here is a 404, another method of one that is listed is a 405 with \`Allow\`, both in the envelope; \`HEAD\` is answered like \`GET\`, without the body.

**Requests** carry JSON in UTF-8. Fields that are not known are ignored. A query parameter that is not known is a 400 that names it, on every list and wherever else there are some; \`include_related\` is taken everywhere. What is no HTTP/1.1 request, or names its host not once, is a 400, headers of more than 16 KiB a 431, another \`Expect\` than \`100-continue\` a 417, all in the envelope.

**Ids and times** of webhooks and deliveries are strings: times are microseconds since the epoch, as digits. Everything else has integer ids and ISO 8601 times.

**Requests** of one account are limited, to 5,000 a minute unless the operator set another number; those about jobs and runs do not count. What is too much is a 429 with \`Retry-After\`.`;

/** Returns the API in OpenAPI 3.1, as served at `/openapi.json`. */
export function openApiDocument(): OpenApiDocument {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Runhook',
      version: releaseVersion(),
      summary: 'Job-event webhooks, their deliveries, and the keys that open them.',
      description: DESCRIPTION,
      contact: { name: 'Whoever runs this service' },
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '.', description: 'Where this document was read.' }],
    security: CALLER,
    tags: [
      { name: 'Webhooks', description: 'Subscriptions: which events of which jobs go to which endpoint.' },
      { name: 'Deliveries', description: 'The log of what was sent, and sending it again.' },
      { name: 'Jobs and runs', description: 'What a job runner reports.' },
      {
        name: 'Accounts and users',
        description: 'Who calls, the key they call with, and the console’s session.',
      },
      { name: 'Received by endpoints', description: 'What Runhook sends to a subscriber’s endpoint.' },
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
