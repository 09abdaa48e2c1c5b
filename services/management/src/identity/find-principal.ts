// SQL by hand: asked for each request of a job runner, where Prisma Client takes three times the CPU.
import { DEPLOYMENTS, PLANS } from '@runhook/contract';
import {
  column,
  credentialKind,
  hashCredential,
  LICENSES,
  type Pool,
  permissionSetsOf,
  queryRows,
} from '@runhook/database';
import { accountOf, type Principal, userPrincipal } from './principals.ts';

/**
 * Who holds the credential, in one query; null when nobody does, or when it was revoked or has expired. Asked anew for
 * each request, so that what is rotated or revoked is refused by every process at once.
 *
 * How long a refusal takes tells nothing: what is looked up is the SHA-256 of what the caller sent, so whatever a
 * comparison in the index gives away is about a hash that no caller can steer towards a stored one.
 */
export async function findPrincipal(pool: Pool, credential: string): Promise<Principal | null> {
  const kind = credentialKind(credential);
  if (kind === null) return null;
  const hash = hashCredential(credential);
  return kind === 'user' ? await findUser(pool, hash) : await findServiceToken(pool, hash);
}

const USER = {
  user_id: column.digits,
  license: column.orNull(column.oneOf(LICENSES)),
  permission_sets: column.orNull(column.texts),
  account_id: column.orNull(column.digits),
  identifier: column.orNull(column.text),
  plan: column.orNull(column.oneOf(PLANS)),
  deployment: column.orNull(column.oneOf(DEPLOYMENTS)),
};

/** A user without a membership has one row, with nulls where the membership would be. */
const USER_BY_KEY = `
  SELECT u.id AS user_id, m.license, m.permission_sets, a.id AS account_id, a.identifier, a.plan, a.deployment
  FROM users u
  LEFT JOIN memberships m ON m.user_id = u.id
  LEFT JOIN accounts a ON a.id = m.account_id
  WHERE u.api_key_hash = $1
  ORDER BY a.id`;

async function findUser(pool: Pool, hash: Uint8Array): Promise<Principal | null> {
  const rows = await queryRows(pool, USER, USER_BY_KEY, [hash], 'user_by_key');
  const [first] = rows;
  if (!first) return null;
  const memberships = rows.flatMap(
    ({ account_id: id, identifier, plan, deployment, license, permission_sets: permissionSets }) =>
      id && identifier && plan && deployment && license && permissionSets
        ? [{ license, permissionSets, account: { id, identifier, plan, deployment } }]
        : [],
  );
  return userPrincipal(first.user_id, memberships);
}

const TOKEN = {
  token_id: column.digits,
  permission_sets: column.texts,
  id: column.digits,
  identifier: column.text,
  plan: column.oneOf(PLANS),
  deployment: column.oneOf(DEPLOYMENTS),
};

const TOKEN_BY_HASH = `
  SELECT t.id AS token_id, t.permission_sets, a.id, a.identifier, a.plan, a.deployment
  FROM service_tokens t
  JOIN accounts a ON a.id = t.account_id
  WHERE t.token_hash = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`;

async function findServiceToken(pool: Pool, hash: Uint8Array): Promise<Principal | null> {
  const [row] = await queryRows(pool, TOKEN, TOKEN_BY_HASH, [hash], 'token_by_hash');
  if (!row) return null;
  return {
    kind: 'service_token',
    tokenId: Number(row.token_id),
    account: accountOf(row),
    permissionSets: permissionSetsOf({ permissionSets: row.permission_sets }),
  };
}
