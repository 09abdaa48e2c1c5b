import { afterAll } from '@jest/globals';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, createTestQueueUrl, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { startService } from '../../services.ts';
import { START_TIMEOUT_MS } from './waiting.ts';

/** The services as processes, on a database of this test file. */
export interface Services {
  /** URL of management, which serves the console. */
  url: string;
  database: PrismaDatabase;
  environment: Record<string, string>;
  close(): Promise<void>;
}

const servicesBySettings = new Map<string, Promise<Services>>();

/** Starts services with these settings on first use. They stop at the end of the file. */
export function sharedServices(environment: Record<string, string> = {}): Promise<Services> {
  const key = JSON.stringify(environment);
  const services = servicesBySettings.get(key) ?? openServices(environment);
  servicesBySettings.set(key, services);
  // After a failure, the next description starts the services again.
  services.catch(() => servicesBySettings.delete(key));
  return services;
}

afterAll(async () => {
  const results = await Promise.allSettled(servicesBySettings.values());
  for (const result of results) if (result.status === 'fulfilled') await result.value.close();
}, START_TIMEOUT_MS);

async function openServices(extraEnvironment: Record<string, string>): Promise<Services> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const testDatabase = await createTestDatabase();
    closers.push(() => testDatabase.drop());
    const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
    closers.push(() => database.close());
    const environment = {
      DATABASE_URL: testDatabase.url,
      QUEUE_URL: await createTestQueueUrl({ name: 'PostgreSQL' }, testDatabase.url),
      // Endpoints of the tests are slow on a busy machine, and some delay their response on purpose.
      DELIVERY_TIMEOUT_MS: '60000',
    };
    const start = async (name: 'management' | 'dispatcher') => {
      const service = await startService(name, { ...environment, ...extraEnvironment });
      closers.push(() => service.stop());
      return service;
    };
    const [management] = await Promise.all([start('management'), start('dispatcher')]);
    return { url: management.url, database, environment, close };
  } catch (error) {
    await close();
    throw error;
  }
}
