// SQL by hand: a setting of the transaction, which the triggers of the audit log read.
import { inPrismaTransaction, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import type { Principal } from '../identity/principals.ts';

/** The author of a transaction's changes. */
export type Actor =
  | {
      kind: 'user';
      id: number /** Client address, which entries on sessions and passwords have. */;
      address?: string;
    }
  | { kind: 'service_token'; id: number }
  /** Runhook itself, such as for memberships that the identity provider names. */
  | { kind: 'service' /** Client address of a sign-in. */; address?: string };

export function actorOf(principal: Principal): Actor {
  return principal.kind === 'user'
    ? { kind: 'user', id: principal.userId }
    : { kind: 'service_token', id: principal.tokenId };
}

/** Runs `work` in a transaction whose changes the audit log records with this actor (docs/contract.md#audit-log). */
export async function inActorTransaction<T>(
  prisma: PrismaClient,
  actor: Actor,
  work: (transaction: Prisma.TransactionClient) => Promise<T>,
): Promise<T> {
  return await inPrismaTransaction(prisma, async (transaction) => {
    await transaction.$queryRaw`SELECT set_config('runhook.actor', ${JSON.stringify(actor)}, true)`;
    return await work(transaction);
  });
}
