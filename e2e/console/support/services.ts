import { afterAll } from '@jest/globals';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, createTestQueueUrl, IN_VAIN_MS } from '@runhook/testing';
import { startService } from '../../services.ts';
import { START_TIMEOUT_MS } from './waiting.ts';

/** The services as processes, on a database that no other test file uses. */
export interface Services {
  /** Management's, which serves the console. */
  url: string;
  database: PrismaDatabase;
  environment: Record<string, string>;
  close(): Promise<void>;
}

const started = new Map<string, Promise<Services>>();

/** Starts services with these settings when a test file first needs them. They stop at the end of the file. */
export function sharedServices(environment: Record<string, string> = {}): Promise<Services> {
  const key = JSON.stringify(environment);
  const services = started.get(key) ?? openServices(environment);
  started.set(key, services);
  // The next description tries again.
  services.catch(() => started.delete(key));
  return services;
}

afterAll(async () => {
  const results = await Promise.allSettled(started.values());
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
    const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: IN_VAIN_MS });
    closers.push(() => database.close());
    const environment = {
      DATABASE_URL: testDatabase.url,
      QUEUE_URL: await createTestQueueUrl({ name: 'PostgreSQL' }, testDatabase.url),
      // An endpoint of the tests is as slow as the machine is busy, and some hold an answer back.
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
