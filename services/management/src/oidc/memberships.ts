import type { Prisma } from '@runhook/database/prisma';
import { LICENSE_DEFAULT } from '../identity/administration.ts';
import type { ClaimedMembership } from './claims.ts';

/**
 * Changes the memberships of the user to those of the claim. Writes differences only, because every write advances the
 * version of cached callers.
 */
export async function updateMemberships(
  transaction: Prisma.TransactionClient,
  userId: bigint,
  claimed: readonly ClaimedMembership[],
): Promise<void> {
  const existing = await transaction.membership.findMany({ where: { userId } });
  const accountIds = claimed.map(({ accountId }) => accountId);
  const removedIds = existing.map(({ accountId }) => accountId).filter((id) => !accountIds.includes(id));
  if (removedIds.length > 0)
    await transaction.membership.deleteMany({ where: { userId, accountId: { in: removedIds } } });
  for (const { accountId, permissionSets, license } of claimed) {
    const current = existing.find((membership) => membership.accountId === accountId);
    if (!current) {
      const fields = { permissionSets, license: license ?? LICENSE_DEFAULT };
      await transaction.membership.create({ data: { userId, accountId, ...fields } });
    } else if (
      !hasSame(current.permissionSets, permissionSets) ||
      current.license !== (license ?? current.license)
    ) {
      const key = { accountId_userId: { accountId, userId } };
      const data = { permissionSets, ...(license !== null && { license }) };
      await transaction.membership.update({ where: key, data });
    }
  }
}

function hasSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item) => other.includes(item));
}
