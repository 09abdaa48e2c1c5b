import { type Problem, toProblems, VALIDATION_OPTIONS } from '@runhook/contract';
import { LICENSES, type License, PERMISSION_SETS, type PermissionSet } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';

/** A membership that the provider names. */
export interface ClaimedMembership {
  accountId: bigint;
  permissionSets: PermissionSet[];
  /** Null: unchanged, and for a new member the default. */
  license: License | null;
}

const ACCOUNTS_MAX = 100;

interface Entry {
  account: number | string;
  permission_sets: PermissionSet[];
  license?: License;
}

const schema = Joi.array<Entry[]>()
  .max(ACCOUNTS_MAX)
  .items(
    Joi.object<Entry>({
      account: Joi.alternatives(
        Joi.number().integer().positive(),
        Joi.string().pattern(/^(act_[0-9A-Za-z]{27}|[1-9]\d{0,15})$/, 'account id'),
      ).required(),
      permission_sets: Joi.array()
        .items(Joi.string().valid(...PERMISSION_SETS))
        .unique()
        .required(),
      license: Joi.string().valid(...LICENSES),
    }),
  )
  .required();

export type ClaimResult =
  | { memberships: ClaimedMembership[]; problems?: never }
  | { memberships?: never; problems: Problem[] };

/**
 * Reads the claim `[{"account": 1, "permission_sets": ["developer"]}]`, or a text with this JSON, for providers that
 * send text only. One invalid entry rejects the claim: an entry that was ignored would hide a missing permission.
 * @param name of the claim, for problems
 */
export async function readAccountsClaim(
  prisma: Pick<PrismaClient, 'account'>,
  name: string,
  claims: Readonly<Record<string, unknown>>,
): Promise<ClaimResult> {
  const { value, error } = schema.validate(parsedText(claims[name]), VALIDATION_OPTIONS);
  if (error) return { problems: toProblems(error, name) };
  const ids = value.map(({ account }) => account);
  const rows = await prisma.account.findMany({
    where: {
      OR: [
        { id: { in: ids.filter((id) => /^\d+$/.test(String(id))).map((id) => BigInt(id)) } },
        { identifier: { in: ids.map(String) } },
      ],
    },
    select: { id: true, identifier: true },
  });
  const problems: Problem[] = [];
  const memberships = new Map<bigint, ClaimedMembership>();
  for (const [index, { account, permission_sets: permissionSets, license = null }] of value.entries()) {
    const field = `${index}.account`;
    const row = rows.find(({ id, identifier }) => identifier === account || String(id) === String(account));
    if (!row) problems.push({ field, message: `account ${account} does not exist` });
    else if (memberships.has(row.id)) problems.push({ field, message: `account ${account} is named twice` });
    else memberships.set(row.id, { accountId: row.id, permissionSets, license });
  }
  return problems.length > 0 ? { problems } : { memberships: [...memberships.values()] };
}

function parsedText(claim: unknown): unknown {
  if (typeof claim !== 'string') return claim;
  try {
    return JSON.parse(claim);
  } catch {
    return claim;
  }
}
