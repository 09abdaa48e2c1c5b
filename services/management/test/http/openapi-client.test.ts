import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Harness, startHarness } from '../harness.ts';

const run = promisify(execFile);
const resolve = createRequire(import.meta.url).resolve;
const cacheDirectory = fileURLToPath(new URL('../../../../node_modules/.cache/', import.meta.url));

/** Code of a client; each `@ts-expect-error` fails if the line below it compiles. */
const USAGE = `import type { components, paths, webhooks } from './api.js';

type Subscriptions = paths['/api/v3/accounts/{account_id}/webhooks/subscriptions'];
type One = paths['/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}'];
type Json<Response extends { content: { 'application/json': unknown } }> = Response['content']['application/json'];

type Created = Json<Subscriptions['post']['responses'][201]>;
type Listed = Json<Subscriptions['get']['responses'][200]>;
type Got = Json<One['get']['responses'][200]>;
type Refused = Json<components['responses']['NotFound']>;
type Deleted = Json<One['delete']['responses'][200]>;

export const fields: Json<Subscriptions['post']['requestBody']> = {
  name: 'Pager',
  event_types: ['job.run.errored'],
  client_url: 'https://receiver.example.com/',
  job_ids: [12, 13],
};
// @ts-expect-error no such event type
export const wrongFields: typeof fields = { ...fields, event_types: ['job.run.deleted'] };
// @ts-expect-error ids of jobs are integers
export const wrongJobs: typeof fields = { ...fields, job_ids: ['12'] };
// @ts-expect-error a name is required
export const fewFields: typeof fields = { event_types: [], client_url: '' };

export function read(created: Created, listed: Listed, got: Got, deleted: Deleted, refused: Refused): string[] {
  const code: 201 = created.status.code;
  const total: number = listed.extra.pagination.total_count;
  const dispatchedAt: string | undefined = got.data.dispatched_at;
  const jobIds: string[] = got.data.job_ids;
  const gone: true = deleted.status.is_success;
  const nothing: null = refused.data;
  // @ts-expect-error it may be absent
  const dispatched: string = got.data.dispatched_at;
  // @ts-expect-error the secret is in the answer to the create only
  const secret = got.data.hmac_secret;
  return [created.data.hmac_secret, ...jobIds, String([code, total, dispatchedAt, gone, nothing, dispatched, secret])];
}

type Payload = components['schemas']['DeliveryPayload'];

export function receive(payload: Payload): string {
  // @ts-expect-error not every event has it
  payload.data.runFinishedAt;
  return payload.eventType === 'job.run.completed' ? payload.data.runFinishedAt : payload.data.runId;
}

type Errored = Json<webhooks['job.run.errored']['post']['requestBody']>;
export const erroredAt = (payload: Errored): string => payload.data.runErroredAt;
`;

let harness: Harness;
let directory: string;

beforeAll(async () => {
  harness = await startHarness();
  await mkdir(cacheDirectory, { recursive: true });
  directory = await mkdtemp(join(cacheDirectory, 'openapi-client-'));
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
  await harness.close();
});

test('with types generated from the OpenAPI document, valid calls compile and invalid ones do not', async () => {
  const generator = join(dirname(resolve('openapi-typescript/package.json')), 'bin/cli.js');
  await run(process.execPath, [
    generator,
    `${harness.origin}/openapi.json`,
    '--output',
    join(directory, 'api.d.ts'),
  ]);
  await writeFile(join(directory, 'usage.ts'), USAGE);
  const compiler = join(dirname(resolve('typescript/package.json')), 'bin/tsc');
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023'];
  const compiled = run(process.execPath, [
    compiler,
    ...options,
    '--ignoreConfig',
    join(directory, 'usage.ts'),
  ]).catch((error: { stdout: string }) => error);
  expect((await compiled).stdout).toBe('');
});
