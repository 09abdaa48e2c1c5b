import { afterAll, beforeAll, describe, test } from '@jest/globals';
import { missingS3Server, type S3Server, startS3Server } from '@runhook/testing';
import { createS3Store } from '../src/s3-store.ts';
import type { ArtifactStore } from '../src/store.ts';
import { testStore } from './store-conformance.ts';

const missing = missingS3Server();
if (missing !== null) test.skip(missing, () => undefined);

(missing === null ? describe : describe.skip)('the store in a bucket', () => {
  let server: S3Server;
  let store: ArtifactStore;
  beforeAll(async () => {
    process.env.AWS_ACCESS_KEY_ID ??= 'key';
    process.env.AWS_SECRET_ACCESS_KEY ??= 'secret';
    server = await startS3Server();
    await server.createBucket('artifacts');
    const { endpoint } = server;
    store = createS3Store({ bucket: 'artifacts', prefix: 'some/prefix/', endpoint, region: 'us-east-1' });
  });
  afterAll(async () => {
    await store.close();
    await server.stop();
  });

  testStore(() => store);
});
