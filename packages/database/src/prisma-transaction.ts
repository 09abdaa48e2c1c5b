import type { Prisma, PrismaClient } from './generated/client.ts';
import { TRANSACTION_IDLE_MAX_MS } from './open-database.ts';
import { DatabaseUnreachableError, isPrismaError } from './statements.ts';

const IDLE_MAX = `SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_IDLE_MAX_MS}`;

/**
 * Runs `work` in a transaction of Prisma Client (READ COMMITTED), and rolls back when it throws. The idle timeout of
 * `inTransaction` applies, so that the locks of a host that vanished are released soon.
 * @throws the error of `work`, Prisma's errors, or DatabaseUnreachableError for the driver's connection errors at the
 * begin and the end of a transaction, which Prisma passes on unchanged
 */
export async function inPrismaTransaction<T>(
  prisma: PrismaClient,
  work: (transaction: Prisma.TransactionClient) => Promise<T>,
): Promise<T> {
  let workError: unknown;
  try {
    return await prisma.$transaction(async (transaction) => {
      await transaction.$executeRawUnsafe(IDLE_MAX);
      return await work(transaction).catch((error: unknown) => {
        workError = error;
        throw error;
      });
    });
  } catch (error) {
    if (error === workError || isPrismaError(error)) throw error;
    throw new DatabaseUnreachableError('The database did not respond.', { cause: error });
  }
}
