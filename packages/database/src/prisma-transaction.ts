import type { Prisma, PrismaClient } from './generated/client.ts';
import { TRANSACTION_IDLE_MAX_MS } from './open-database.ts';
import { DatabaseUnreachableError, isPrismaError } from './statements.ts';

const IDLE_MAX = `SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_IDLE_MAX_MS}`;

/**
 * Runs `work` in a transaction of Prisma Client, rolled back when it throws. Each statement sees what was committed
 * before it, as everywhere (READ COMMITTED). With the limit of `inTransaction`: what a host that vanished has locked is
 * free again soon. Throws what `work` threw, Prisma's errors, or `DatabaseUnreachableError`: what the driver says of a
 * connection at the begin and the end of a transaction comes through Prisma as it is.
 */
export async function inPrismaTransaction<T>(
  prisma: PrismaClient,
  work: (transaction: Prisma.TransactionClient) => Promise<T>,
): Promise<T> {
  let thrownByWork: unknown;
  try {
    return await prisma.$transaction(async (transaction) => {
      await transaction.$executeRawUnsafe(IDLE_MAX);
      return await work(transaction).catch((error: unknown) => {
        thrownByWork = error;
        throw error;
      });
    });
  } catch (error) {
    if (error === thrownByWork || isPrismaError(error)) throw error;
    throw new DatabaseUnreachableError('The database did not answer.', { cause: error });
  }
}
