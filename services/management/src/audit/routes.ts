import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, READ_AUDIT } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { moment, oneOf, QueryReader } from '../http/query-parameters.ts';

/** What is told; the triggers of the tables write it. */
export const AUDIT_ACTIONS = [
  'account.changed',
  'api_key.rotated',
  'member.added',
  'member.changed',
  'member.removed',
  'password.reset',
  'secret.rotated',
  'secret.rotation_finished',
  'session.signed_in',
  'token.created',
  'token.revoked',
  'webhook.changed',
  'webhook.created',
  'webhook.deactivated',
  'webhook.deleted',
] as const;

/** `operator`: by the command line, or in the database itself. `service`: by itself. */
export const ACTOR_KINDS = ['user', 'service_token', 'operator', 'service'] as const;
export const TARGET_KINDS = ['webhook', 'user', 'service_token', 'account'] as const;

/** One change as the API answers it; times are microseconds since the epoch, as digits. */
export interface AuditEntryView {
  id: string;
  created_at: string;
  action: string;
  /** Id and name are null of an operator and of the service. */
  actor: { kind: string; id: string | null; name: string | null };
  target: { kind: string; id: string; name: string };
  details: Record<string, unknown>;
}

/** Who changed what and when (docs/contract.md#audit-log), newest first. */
export function auditEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/accounts/:account_id/audit',
    access: READ_AUDIT,
    async handle({ account, query }) {
      const reader = new QueryReader(query);
      const page = reader.page();
      const action = reader.optional('action', oneOf(AUDIT_ACTIONS));
      const since = reader.optional('since', moment);
      const until = reader.optional('until', moment);
      reader.check();
      const where: Prisma.AuditEntryWhereInput = {
        accountId: BigInt(account.id),
        ...(action !== null && { action }),
        createdAtMicros: {
          ...(since !== null && { gte: BigInt(since) }),
          ...(until !== null && { lt: BigInt(until) }),
        },
      };
      const [rows, totalCount] = await Promise.all([
        prisma.auditEntry.findMany({ where, orderBy: { id: 'desc' }, take: page.limit, skip: page.offset }),
        prisma.auditEntry.count({ where }),
      ]);
      return { code: 200, data: rows.map(entryView), extra: pageExtra(page, totalCount, rows.length) };
    },
  };
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
