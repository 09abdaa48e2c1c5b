import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createAccount, createJob } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, type TestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

test('jobs that are created concurrently share the new project and environment', async () => {
  const { prisma } = database;
  const account = await createAccount(prisma, { name: 'A', plan: 'team', deployment: 'multi_tenant' });
  const create = (name: string) =>
    createJob(prisma, {
      accountId: account.id,
      name,
      projectName: 'Warehouse',
      environmentName: 'Production',
    });
  const jobs = await Promise.all(Array.from({ length: 20 }, (_, index) => create(`Job ${index}`)));
  expect(new Set(jobs.map(({ project_id }) => project_id)).size).toBe(1);
  expect(new Set(jobs.map(({ environment_id }) => environment_id)).size).toBe(1);
  expect(await prisma.project.count()).toBe(1);
  expect(jobs[0]).toEqual({
    id: expect.any(Number),
    account_id: account.id,
    name: 'Job 0',
    project_id: expect.any(Number),
    project_name: 'Warehouse',
    environment_id: expect.any(Number),
    environment_name: 'Production',
  });
});
