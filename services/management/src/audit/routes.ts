import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, READ_AUDIT } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { accountIdOf, familyEnd, familyTimestamp } from '../http/filter-readers.ts';
import { oneOf, QueryReader, timestamp } from '../http/query-parameters.ts';

/** Recorded actions. Triggers of the tables write the entries. */
export const AUDIT_ACTIONS = [
  'access.ended',
  'account.changed',
  'api_key.rotated',
  'member.added',
  'member.changed',
  'member.removed',
  'password.changed',
  'password.reset',
  'secret.rotated',
  'secret.rotation_finished',
  'session.ended',
  'session.sign_in_failed',
  'session.signed_in',
  'signature_key.rotated',
  'token.created',
  'token.revoked',
  'webhook.changed',
  'webhook.created',
  'webhook.deactivated',
  'webhook.deleted',
] as const;

/**
 * `operator`: changed with the command line or directly in the database. `service`: changed by Runhook itself.
 * `anonymous`: a caller without a valid credential.
 */
export const ACTOR_KINDS = ['user', 'service_token', 'operator', 'service', 'anonymous'] as const;
export const TARGET_KINDS = ['webhook', 'user', 'service_token', 'account'] as const;

/** An audit entry as the API returns it; times are microseconds since the epoch, as digits. */
export interface AuditEntryView {
  id: string;
  created_at: string;
  action: string;
  /** Id and name are null except for a user and a service token. */
  actor: { kind: string; id: string | null; name: string | null };
  target: { kind: string; id: string; name: string };
  details: Record<string, unknown>;
}

/**
 * Lists changes with actor and time (docs/contract.md#audit-log), newest first, under the path of the first releases
 * and under that of clients of this API family.
 */
export function auditEndpoints(deps: { prisma: PrismaClient }): AccountEndpoint[] {
  return ['audit', 'audit-logs'].map((name) => auditEndpoint(`/api/v3/accounts/:account_id/${name}`, deps));
}

function auditEndpoint(path: AccountEndpoint['path'], { prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path,
    access: READ_AUDIT,
    isSlowRead: true,
    async handle({ account, query }) {
      const reader = new QueryReader(query);
      const page = reader.page();
      reader.filter('account_id', accountIdOf(account.id));
      const action = reader.optional('action', oneOf(AUDIT_ACTIONS));
      const since = reader.optional('since', timestamp);
      const until = reader.optional('until', timestamp);
      const loggedStart = reader.filter('logged_at_start', familyTimestamp);
      const loggedEnd = reader.filter('logged_at_end', familyEnd);
      reader.check();
      const where: Prisma.AuditEntryWhereInput = {
        accountId: BigInt(account.id),
        ...(action !== null && { action }),
        AND: [
          { createdAtMicros: timeCondition({ gte: since, lt: until }) },
          { createdAtMicros: timeCondition({ gte: loggedStart, lte: loggedEnd }) },
        ],
      };
      const [rows, totalCount] = await Promise.all([
        prisma.auditEntry.findMany({ where, orderBy: { id: 'desc' }, take: page.limit, skip: page.offset }),
        prisma.auditEntry.count({ where }),
      ]);
      return { code: 200, data: rows.map(entryView), extra: pageExtra(page, totalCount, rows.length) };
    },
  };
}

function timeCondition(bounds: Record<string, string | null>): Prisma.BigIntFilter {
  const present = Object.entries(bounds).filter((bound): bound is [string, string] => bound[1] !== null);
  return Object.fromEntries(present.map(([operator, micros]) => [operator, BigInt(micros)]));
}

function entryView(row: Prisma.AuditEntryModel): AuditEntryView {
  return {
    id: String(row.id),
    created_at: String(row.createdAtMicros),
    action: row.action,
    actor: { kind: row.actorKind, id: row.actorId, name: row.actorName },
    target: { kind: row.targetKind, id: row.targetId, name: row.targetName },
    details: row.details as Record<string, unknown>,
  };
}
