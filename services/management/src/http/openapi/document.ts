import { readFileSync } from 'node:fs';
import type { OpenApiDocument, Paths } from './openapi-types.ts';
import { PARAMETERS } from './parameters.ts';
import { deliveryPaths } from './paths/deliveries.ts';
import { identityPaths } from './paths/identity.ts';
import { jobPaths } from './paths/jobs.ts';
import { recoveryPaths } from './paths/recoveries.ts';
import { runPaths } from './paths/runs.ts';
import { subscriptionPaths } from './paths/subscriptions.ts';
import { RESPONSES } from './responses.ts';
import { SCHEMAS } from './schemas.ts';
import { CALLER, SECURITY_SCHEMES } from './security.ts';
import { WEBHOOKS } from './webhooks.ts';

/** One entry for every endpoint that is mounted; a test holds the two against each other. */
const PATHS: Paths = {
  ...subscriptionPaths,
  ...deliveryPaths,
  ...recoveryPaths,
  ...jobPaths,
  ...runPaths,
  ...identityPaths,
};

const DESCRIPTION = `Runhook tells other systems what happened to a job run: it sends a signed HTTP POST to every endpoint that subscribed, tries the ones that fail again, and keeps a log of each delivery.

**Answers** come in one envelope: \`data\` and \`status.code\`, which is the HTTP status; lists add \`extra\`. A refusal has \`data: null\`, and in \`status\` also \`is_success: false\`, a \`user_message\` and a \`developer_message\`; a 400 adds \`errors\`, an entry for every invalid field. Every answer has an \`x-request-id\`, which a request may bring.

**Paths** work with and without a slash at the end. A path that is not listed here is a 404, another method of one that is listed is a 405 with \`Allow\`, both in the envelope; \`HEAD\` is answered like \`GET\`, without the body.

**Requests** carry JSON in UTF-8. Fields and query parameters that are not known are ignored.

**Ids and times** of webhooks and deliveries are strings: times are microseconds since the epoch, as digits. Everything else has integer ids and ISO 8601 times.

**Requests** of one account are limited, to 5,000 a minute unless the operator set another number; those about jobs and runs do not count. What is too much is a 429 with \`Retry-After\`.`;

/** The whole API in OpenAPI 3.1, as `/openapi.json` answers it. */
export function openApiDocument(): OpenApiDocument {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Runhook',
      version: packageVersion(),
      summary: 'Job-event webhooks, their deliveries, and the keys that open them.',
      description: DESCRIPTION,
    },
    servers: [{ url: './', description: 'Where this document was read.' }],
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

/** The package lies as far above this file in `src` as in `dist`. */
function packageVersion(): string {
  const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
