// SQL by hand: this runs for each request of a job runner, where Prisma Client takes three times the CPU.
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
import { approximateBytes } from '@runhook/runtime';
import { LRUCache } from 'lru-cache';
import { accountOf, userPrincipal, type VersionedPrincipal } from './principals.ts';

/**
 * Returns the principal of a credential in one query, or null if the credential is unknown, revoked or expired. It is
 * read for each request, so that every process rejects a rotated or revoked credential at once; {@link
 * PrincipalCache} is the exception.
 *
 * The response time reveals nothing: the query compares the SHA-256 of the credential, and no caller can steer that
 * hash towards a stored one.
 */
export async function findPrincipal(pool: Pool, credential: string): Promise<VersionedPrincipal | null> {
  const kind = credentialKind(credential);
  if (kind === null) return null;
  const hash = hashCredential(credential);
  return kind === 'user' ? await findUser(pool, hash) : await findServiceToken(pool, hash);
}

const VERSION = '(SELECT version FROM cache_version) AS version';

const USER_COLUMNS = {
  version: column.digits,
  valid_ms: column.orNull(column.float),
  user_id: column.digits,
  license: column.orNull(column.oneOf(LICENSES)),
  permission_sets: column.orNull(column.texts),
  account_id: column.orNull(column.digits),
  identifier: column.orNull(column.text),
  plan: column.orNull(column.oneOf(PLANS)),
  deployment: column.orNull(column.oneOf(DEPLOYMENTS)),
};

/**
 * A user without a membership has one row with nulls in the columns of the membership. A user of the identity provider
 * is found until the provider has ended the access.
 */
const USER_BY_KEY = `
  SELECT ${VERSION}, (extract(epoch FROM i.check_due_at - now()) * 1000)::float8 AS valid_ms,
    u.id AS user_id, m.license, m.permission_sets, a.id AS account_id, a.identifier, a.plan, a.deployment
  FROM users u
  LEFT JOIN oidc_identities i ON i.user_id = u.id
  LEFT JOIN memberships m ON m.user_id = u.id
  LEFT JOIN accounts a ON a.id = m.account_id
  WHERE u.api_key_hash = $1 AND i.ended_at IS NULL
  ORDER BY a.id`;

async function findUser(pool: Pool, hash: Uint8Array): Promise<VersionedPrincipal | null> {
  const rows = await queryRows(pool, USER_COLUMNS, USER_BY_KEY, [hash], 'user_by_key');
  const [first] = rows;
  if (!first) return null;
  const memberships = rows.flatMap(
    ({ account_id: id, identifier, plan, deployment, license, permission_sets: permissionSets }) =>
      id && identifier && plan && deployment && license && permissionSets
        ? [{ license, permissionSets, account: { id, identifier, plan, deployment } }]
        : [],
  );
  return {
    principal: userPrincipal(first.user_id, memberships),
    version: first.version,
    validMs: first.valid_ms,
  };
}

const TOKEN_COLUMNS = {
  version: column.digits,
  valid_ms: column.orNull(column.float),
  token_id: column.digits,
  permission_sets: column.texts,
  id: column.digits,
  identifier: column.text,
  plan: column.oneOf(PLANS),
  deployment: column.oneOf(DEPLOYMENTS),
};

const TOKEN_BY_HASH = `
  SELECT ${VERSION}, (extract(epoch FROM t.expires_at - now()) * 1000)::float8 AS valid_ms,
    t.id AS token_id, t.permission_sets, a.id, a.identifier, a.plan, a.deployment
  FROM service_tokens t
  JOIN accounts a ON a.id = t.account_id
  WHERE t.token_hash = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`;

async function findServiceToken(pool: Pool, hash: Uint8Array): Promise<VersionedPrincipal | null> {
  const [row] = await queryRows(pool, TOKEN_COLUMNS, TOKEN_BY_HASH, [hash], 'token_by_hash');
  if (!row) return null;
  return {
    principal: {
      kind: 'service_token',
      tokenId: Number(row.token_id),
      account: accountOf(row),
      permissionSets: permissionSetsOf({ permissionSets: row.permission_sets }),
    },
    version: row.version,
    validMs: row.valid_ms,
  };
}

const CACHED_BYTES_MAX = 16 * 1_024 * 1_024;

/**
 * Caches callers for requests whose own statement checks that `cache_version`, one number for all accounts, is still
 * that of the caller. Every change of a key, membership, plan or permission raises it in its own transaction, so a
 * statement for an outdated caller writes nothing.
 */
export class PrincipalCache {
  readonly #find: (credential: string) => Promise<VersionedPrincipal | null>;
  readonly #entries = new LRUCache<string, VersionedPrincipal & { expiresAtMs: number }>({
    maxSize: CACHED_BYTES_MAX,
    sizeCalculation: approximateBytes,
  });

  constructor(find: (credential: string) => Promise<VersionedPrincipal | null>) {
    this.#find = find;
  }

  /** @param isVersionChecked whether the statement of the request checks `cache_version` */
  async find(credential: string, isVersionChecked: boolean): Promise<VersionedPrincipal | null> {
    const key = Buffer.from(hashCredential(credential)).toString('base64');
    const cached = isVersionChecked ? this.#entries.get(key) : undefined;
    if (cached !== undefined && performance.now() < cached.expiresAtMs) return cached;
    const found = await this.#find(credential);
    if (found === null) this.#entries.delete(key);
    else {
      const expiresAtMs = performance.now() + (found.validMs ?? Number.POSITIVE_INFINITY);
      this.#entries.set(key, { ...found, expiresAtMs });
    }
    return found;
  }
}
