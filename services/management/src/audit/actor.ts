// SQL by hand: a setting of the transaction, which the triggers of the audit log read.
import { inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import type { Principal } from '../identity/principals.ts';

/** Who makes the changes of a transaction. */
export type Actor =
  | { kind: 'user'; id: number /** Where a sign-in came from. */; address?: string }
  | { kind: 'service_token'; id: number };

export function actorOf(principal: Principal): Actor {
  return principal.kind === 'user'
    ? { kind: 'user', id: principal.userId }
    : { kind: 'service_token', id: principal.tokenId };
}

/** A transaction whose changes are told as the actor's (docs/contract.md#audit-log). */
export async function inTransactionOf<T>(
  prisma: PrismaClient,
  actor: Actor,
  work: (transaction: Prisma.TransactionClient) => Promise<T>,
): Promise<T> {
  return await inPrismaTransaction(prisma, async (transaction) => {
    await transaction.$queryRaw`SELECT set_config('runhook.actor', ${JSON.stringify(actor)}, true)`;
    return await work(transaction);
  });
}
