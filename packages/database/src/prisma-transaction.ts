import type { Prisma, PrismaClient } from './generated/client.ts';
import { TRANSACTION_IDLE_MAX_MS } from './open-database.ts';

const IDLE_MAX = `SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_IDLE_MAX_MS}`;

/**
 * Runs `work` in a transaction of Prisma Client, rolled back when it throws. Each statement sees what was committed
 * before it, as everywhere (READ COMMITTED). With the limit of `inTransaction`: what a host that vanished has locked is
 * free again soon.
 */
export async function inPrismaTransaction<T>(
  prisma: PrismaClient,
  work: (transaction: Prisma.TransactionClient) => Promise<T>,
): Promise<T> {
  return await prisma.$transaction(async (transaction) => {
    await transaction.$executeRawUnsafe(IDLE_MAX);
    return await work(transaction);
  });
}
