import {
  nullable,
  type Paths,
  type Response,
  responseObject,
  type Schema,
  schemaRef,
  text,
} from '../http/openapi/field-schemas.ts';
import { accountParameter, PAGE, parameter, queryParameter } from '../http/openapi/parameters.ts';
import { REPORTERS } from '../http/openapi/permissions.ts';
import {
  BODY_FAILURES,
  failureWithReason,
  leaseConflict,
  operationResponses,
  success,
} from '../http/openapi/responses.ts';
import { SEARCH_CHARACTERS_MAX } from '../http/query-parameters.ts';
import { STEP_MAX } from './artifact-path.ts';
import { MODEL_LIMITS } from './model-scanner.ts';
import type { ArtifactView, ModelView } from './routes.ts';

const STEP: Schema = {
  type: 'integer',
  minimum: 1,
  maximum: STEP_MAX,
  description: 'Number of the step that wrote the file.',
  examples: [1],
};

const ARTIFACT_EXAMPLE: ArtifactView = {
  path: 'run_results.json',
  step: 4,
  bytes: 12_345,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
};

const MODEL_EXAMPLE: ModelView = {
  run_id: 345,
  step: 4,
  unique_id: 'model.analytics.orders',
  name: 'orders',
  resource_type: 'model',
  status: 'error',
  execution_time: 1.42,
  message: 'Database Error in model orders',
  thread_id: 'Thread-1',
};

/** Schemas of the OpenAPI document; see docs/contract.md#artifacts. */
export const artifactSchemas: Record<string, Schema> = {
  Artifact: responseObject<ArtifactView>('A stored file of a run.', {
    path: text('Path of the file.'),
    step: nullable(STEP),
    bytes: { type: 'integer', minimum: 0, description: 'Size of the file.' },
    sha256: {
      type: 'string',
      pattern: '^[0-9a-f]{64}$',
      description: 'SHA-256 of the received bytes, in hexadecimal digits; also the `ETag` of the file.',
    },
  }),

  Model: responseObject<ModelView>('The result of a model, test, seed or snapshot in a run.', {
    run_id: { type: 'integer', minimum: 1, description: 'The run.' },
    step: nullable(STEP),
    unique_id: text('Id of the node, such as `model.<package>.<name>`.', {
      maxLength: MODEL_LIMITS.idCharactersMax,
    }),
    name: text('The part of `unique_id` after the package.'),
    resource_type: text('The first part of `unique_id`.'),
    status: text('The status, as the file has it.', { maxLength: MODEL_LIMITS.statusCharactersMax }),
    execution_time: { type: ['number', 'null'], description: 'Seconds; null without one.' },
    message: {
      type: ['string', 'null'],
      maxLength: MODEL_LIMITS.messageCharactersMax,
      description: 'The message of the node; null without one.',
    },
    thread_id: { type: ['string', 'null'], description: 'The thread that executed it; null without one.' },
  }),
};

const tags = ['Jobs and runs'];
const ARTIFACT_PATH: Schema = { type: 'string', description: 'Path of a file.' };

const stepParameter = (description: string) => queryParameter('step', description, STEP);
const STEP_OF_LIST = stepParameter('Only files of this step. Default: of all.');
const STEP_OF_FILE = stepParameter(
  'The file of this step; if the step has none, the one that was uploaded without a step. Default: the file of that path that was uploaded last.',
);

const FILE: Record<200 | 206 | 304 | 416, Response> = {
  200: {
    description:
      'The bytes of the file, to be saved: `application/json` for `.json`, `text/plain` for some other endings, else `application/octet-stream`. With `ETag`.',
    content: { '*/*': { schema: { description: 'The file.' } } },
  },
  206: {
    description: 'The bytes that `Range` names.',
    content: { '*/*': { schema: { description: 'Bytes.' } } },
  },
  304: { description: '`If-None-Match` has the `ETag` of the file.' },
  416: failureWithReason(
    416,
    'The range is outside of the file.',
    'The file has 10 bytes: the range is outside of it.',
  ),
};

const LIST_EXAMPLE = 'manifest.json';

function listResponses() {
  const schema: Schema = { type: 'array', items: ARTIFACT_PATH, description: 'Paths, each once, in order.' };
  return operationResponses('runs', { 200: success(200, 'The paths.', schema, [LIST_EXAMPLE]) }, [400]);
}

/** Paths of the OpenAPI document; see docs/contract.md#artifacts. */
export const artifactPaths: Paths = {
  '/api/v2/accounts/{account_id}/runs/{run_id}/artifacts/{path}': {
    parameters: [parameter('AccountId'), parameter('RunId'), parameter('ArtifactPath')],
    get: {
      operationId: 'getArtifact',
      tags,
      summary: 'Download a file of a run',
      description: 'Supports `Range` with one range, `If-Range`, `If-None-Match` and `HEAD`.',
      parameters: [STEP_OF_FILE, accountParameter()],
      responses: operationResponses('runs', FILE, [400]),
    },
    put: {
      operationId: 'putArtifact',
      tags,
      summary: 'Upload a file of a run',
      description: `Any bytes; the content type has no effect. Replaces the file of that path and step. Possible from the start of the run on. The models of \`run_results.json\` are read. ${REPORTERS}`,
      parameters: [
        stepParameter('Number of the step that wrote the file. Default: none.'),
        parameter('LeaseToken'),
        accountParameter(),
      ],
      requestBody: {
        description: 'The file, with `Content-Length` and without a content encoding.',
        required: true,
        content: { '*/*': { schema: { description: 'Any bytes.' } } },
      },
      responses: operationResponses(
        'runs',
        {
          200: success(200, 'The file is replaced.', schemaRef('Artifact'), ARTIFACT_EXAMPLE),
          201: success(201, 'The file is stored.', schemaRef('Artifact'), ARTIFACT_EXAMPLE),
          409: leaseConflict(
            'The run has not started, has too many files, or the quota of the account is used.',
            'The artifacts of an account take up to 1024 MiB, which are used.',
          ),
          411: failureWithReason(411, '`Content-Length` is missing.', 'Content-Length is required.'),
          413: failureWithReason(
            413,
            'The file has more than 64 MiB, or more than the store accepts (5 MiB in PostgreSQL).',
            'The artifact store accepts up to 5 MiB per file.',
          ),
          415: failureWithReason(
            415,
            'The request has a `Content-Encoding`.',
            'The request body must not be compressed: its Content-Encoding is not supported. Accept-Encoding names the supported one.',
          ),
        },
        BODY_FAILURES,
      ),
    },
  },

  '/api/v2/accounts/{account_id}/runs/{run_id}/models': {
    parameters: [parameter('AccountId'), parameter('RunId')],
    get: {
      operationId: 'listModels',
      tags,
      summary: 'List the models of a run',
      description: `In the order of the run's \`run_results.json\`, which is read when it is uploaded: up to ${MODEL_LIMITS.modelsMax} of each file.`,
      parameters: [
        stepParameter('Only models of the file of this step. Default: of all.'),
        queryParameter('status', 'Only models in this status.', {
          type: 'string',
          maxLength: SEARCH_CHARACTERS_MAX,
        }),
        accountParameter(),
        ...PAGE,
      ],
      responses: operationResponses(
        'runs',
        { 200: success(200, 'A page of models.', schemaRef('Model'), MODEL_EXAMPLE, 'list') },
        [400],
      ),
    },
  },

  '/api/v2/accounts/{account_id}/jobs/{job_id}/artifacts': {
    parameters: [parameter('AccountId'), parameter('JobId')],
    get: {
      operationId: 'listJobArtifacts',
      tags,
      summary: 'List the files of the latest successful run of a job',
      description: 'Their paths, as for the run.',
      parameters: [STEP_OF_LIST, accountParameter()],
      responses: listResponses(),
    },
  },

  '/api/v2/accounts/{account_id}/jobs/{job_id}/artifacts/{path}': {
    parameters: [parameter('AccountId'), parameter('JobId'), parameter('ArtifactPath')],
    get: {
      operationId: 'getJobArtifact',
      tags,
      summary: 'Download a file of the latest successful run of a job',
      description: 'As for the run.',
      parameters: [STEP_OF_FILE, accountParameter()],
      responses: operationResponses('runs', FILE, [400]),
    },
  },
};

/** The list of a run's files, on the path whose POST is the mark of their ingestion. */
export const listArtifacts = {
  operationId: 'listArtifacts',
  tags,
  summary: 'List the files of a run',
  description: 'Their paths; an empty list for a run without files.',
  parameters: [STEP_OF_LIST, accountParameter()],
  responses: listResponses(),
};
