import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from './generated/client.ts';
import {
  CONNECT_TIMEOUT_MS,
  type Database,
  type DatabaseOptions,
  openDatabase,
  QUERY_TIMEOUT_MS,
} from './open-database.ts';

export { Prisma, type PrismaClient } from './generated/client.ts';
export { inPrismaTransaction } from './prisma-transaction.ts';

/** One pool, two faces: Prisma Client, and SQL by hand for the hot path and the log. */
export interface PrismaDatabase extends Database {
  prisma: PrismaClient;
}

/**
 * Opens nothing yet: the first query connects. A module of its own (`@runhook/database/prisma`), so that who needs no
 * Prisma Client loads none.
 */
export function openPrismaDatabase(options: DatabaseOptions): PrismaDatabase {
  const { pool, close } = openDatabase(options);
  const prisma = new PrismaClient({
    adapter: new PrismaPg(pool),
    transactionOptions: {
      maxWait: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      timeout: QUERY_TIMEOUT_MS,
    },
  });
  return {
    prisma,
    pool,
    close: async () => {
      await prisma.$disconnect();
      await close();
    },
  };
}

/**
 * A filter of Prisma Client for a column that contains the text, whatever the case. Prisma hands the text to ILIKE as it
 * is, in which `%` and `_` mean something; here they are characters like any other.
 */
export function containing(text: string): { contains: string; mode: 'insensitive' } {
  return { contains: text.replaceAll(/[\\%_]/g, '\\$&'), mode: 'insensitive' };
}
