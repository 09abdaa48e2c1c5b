import { PrismaPg } from '@prisma/adapter-pg';
import { Prisma, PrismaClient } from './generated/client.ts';
import {
  CONNECT_TIMEOUT_MS,
  type Database,
  type DatabaseOptions,
  openDatabase,
  QUERY_TIMEOUT_MS,
} from './open-database.ts';

export { inPrismaTransaction } from './prisma-transaction.ts';
export { Prisma, type PrismaClient };

/** One pool with two interfaces: Prisma Client, and handwritten SQL for the hot path and the log. */
export interface PrismaDatabase extends Database {
  prisma: PrismaClient;
}

/**
 * Opens no connection yet: the first query connects. A separate entry point (`@runhook/database/prisma`), so that
 * processes without Prisma Client do not load it.
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
 * Returns a case-insensitive Prisma filter for a column that contains the text. Prisma passes the text unescaped to
 * ILIKE, so `%` and `_` are escaped here.
 */
export function containsText(text: string): { contains: string; mode: 'insensitive' } {
  return { contains: text.replaceAll(/[\\%_]/g, '\\$&'), mode: 'insensitive' };
}

/** Whether Prisma rejected a statement with one of these codes: `P2002` for a duplicate, `P2025` for a missing row. */
export function isRejection(error: unknown, ...codes: ('P2002' | 'P2025')[]): boolean {
  if (!(error instanceof Prisma.PrismaClientKnownRequestError)) return false;
  return codes.some((code) => code === error.code);
}
