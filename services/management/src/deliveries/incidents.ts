import { isId } from '@runhook/contract';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { createReader, oneOf, QueryReader } from '../http/query-parameters.ts';
import { type CauseView, type Evidence, readEvidence } from './incident-evidence.ts';
import type { ListDependencies } from './routes.ts';

export const INCIDENT_STATUSES = ['open', 'closed'] as const;

/** A time during which a webhook failed (docs/contract.md#incidents); times are microseconds since the epoch. */
export interface IncidentView {
  subscription_id: string;
  subscription_name: string;
  status: (typeof INCIDENT_STATUSES)[number];
  /** Start of the first failed attempt. */
  since: string;
  /** Start of the successful attempt that ended it, or `endpoint_changed_at`; null while the incident is open. */
  until: string | null;
  /** Time of a new endpoint or a reactivation, else null. The incident stays open until a later attempt succeeds. */
  endpoint_changed_at: string | null;
  /** Number of failed attempts. */
  failure_count: number;
  /** Null if no attempt ever succeeded, for closed incidents, and with `endpoint_changed_at`. */
  last_success_at: string | null;
  delivery_count: Evidence['counts']['delivery_count'];
  failed_count: number;
  pending_count: number;
  run_count: number;
  first_delivery: Evidence['counts']['first_delivery'];
  last_delivery: Evidence['counts']['last_delivery'];
  causes: CauseView[];
}

/** Failures below both limits are no incident. The trigger that stores ended incidents must have the same limits. */
const FAILURES_MIN = 5;
const OPEN_AFTER_MS = 60_000;

type IncidentSpan = Pick<
  IncidentView,
  | 'subscription_id'
  | 'subscription_name'
  | 'status'
  | 'since'
  | 'until'
  | 'endpoint_changed_at'
  | 'failure_count'
  | 'last_success_at'
>;

interface Filters {
  accountId: bigint;
  subscriptionId?: string;
}

/** Lists open incidents, then closed ones, each newest first (docs/contract.md#incidents). */
export function incidentsEndpoint({ prisma, reads }: ListDependencies): AccountEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/accounts/:account_id/webhooks/incidents',
    access: READ_WEBHOOKS,
    isSlowRead: true,
    async handle(request) {
      const { account, query } = request;
      const reader = new QueryReader(query);
      const page = reader.page();
      const status = reader.optional('status', oneOf(INCIDENT_STATUSES));
      const subscriptionId = reader.optional('subscription_id', subscriptionIdText);
      reader.check();
      const filters: Filters = {
        accountId: BigInt(account.id),
        ...(subscriptionId !== null && { subscriptionId }),
      };
      const changedIncidents = await findUnverifiedChanges(prisma, filters);
      const open =
        status === 'closed'
          ? []
          : [...(await findFailingSpans(prisma, filters)), ...changedIncidents.map(({ span }) => span)];
      const shownOpen = open.slice(page.offset, page.offset + page.limit);
      const closedPage = {
        skip: Math.max(0, page.offset - open.length),
        take: page.limit - shownOpen.length,
      };
      const excludedIds = changedIncidents.map(({ id }) => id);
      const [closed, closedCount] =
        status === 'open' ? [[], 0] : await findClosedSpans(prisma, { ...filters, excludedIds }, closedPage);
      const spans = [...shownOpen, ...closed];
      const evidence = await readEvidence(
        reads.databaseFor(request),
        account.id,
        spans.map(({ subscription_id, since, until, endpoint_changed_at }) => ({
          subscriptionId: subscription_id,
          since,
          until: until ?? endpoint_changed_at,
        })),
      );
      const data = spans.map((span, index) => incidentView(span, evidence[index]));
      return { code: 200, data, extra: pageExtra(page, open.length + closedCount, data.length) };
    },
  };
}

const subscriptionIdText = createReader(
  (text) => (isId('subscription', text) ? text : null),
  'must be the id of a webhook',
);

/** Returns the open incidents of subscriptions that are failing now, at most one for each. */
async function findFailingSpans(
  prisma: PrismaClient,
  { accountId, subscriptionId }: Filters,
): Promise<IncidentSpan[]> {
  const rows = await prisma.subscription.findMany({
    where: {
      accountId,
      deletedAt: null,
      ...(subscriptionId !== undefined && { id: subscriptionId }),
      failingSince: { not: null },
      AND: [
        // A webhook that its owner deactivated needs no attention.
        { OR: [{ active: true }, { deactivateReason: { not: null } }] },
        {
          OR: [
            { consecutiveFailures: { gte: FAILURES_MIN } },
            { failingSince: { lte: new Date(Date.now() - OPEN_AFTER_MS) } },
          ],
        },
      ],
    },
    select: {
      id: true,
      name: true,
      failingSinceMicros: true,
      consecutiveFailures: true,
      lastSuccessAtMicros: true,
    },
    orderBy: [{ failingSince: 'desc' }, { id: 'desc' }],
  });
  return rows.map((row) => ({
    subscription_id: row.id,
    subscription_name: row.name,
    status: 'open',
    since: String(row.failingSinceMicros),
    until: null,
    endpoint_changed_at: null,
    failure_count: row.consecutiveFailures,
    last_success_at: row.lastSuccessAtMicros === null ? null : String(row.lastSuccessAtMicros),
  }));
}

const ENDED_FIELDS = {
  id: true,
  subscriptionId: true,
  openedAtMicros: true,
  closedAtMicros: true,
  failures: true,
  endpointChanged: true,
  subscription: { select: { name: true, lastSuccessAtMicros: true } },
} satisfies Prisma.IncidentSelect;

type EndedRow = Prisma.IncidentGetPayload<{ select: typeof ENDED_FIELDS }>;

/** Returns incidents ended by a new endpoint or a reactivation, if no attempt has succeeded or failed since. */
async function findUnverifiedChanges(
  prisma: PrismaClient,
  { accountId, subscriptionId }: Filters,
): Promise<{ id: bigint; span: IncidentSpan }[]> {
  const rows = await prisma.incident.findMany({
    where: {
      accountId,
      ...(subscriptionId !== undefined && { subscriptionId }),
      endpointChanged: true,
      // A webhook that has only a feed will have no attempt.
      subscription: { deletedAt: null, active: true, failingSince: null, clientUrl: { not: '' } },
    },
    select: ENDED_FIELDS,
    orderBy: [{ closedAt: 'desc' }, { id: 'desc' }],
  });
  const unverified = rows.filter(
    ({ closedAtMicros, subscription }) => (subscription.lastSuccessAtMicros ?? 0n) < closedAtMicros,
  );
  return unverified.map((row) => ({ id: row.id, span: { ...endedSpan(row), status: 'open', until: null } }));
}

async function findClosedSpans(
  prisma: PrismaClient,
  { accountId, subscriptionId, excludedIds }: Filters & { excludedIds: bigint[] },
  page: { skip: number; take: number },
): Promise<[IncidentSpan[], number]> {
  const where: Prisma.IncidentWhereInput = {
    accountId,
    ...(subscriptionId !== undefined && { subscriptionId }),
    id: { notIn: excludedIds },
    subscription: { deletedAt: null },
  };
  const [rows, count] = await Promise.all([
    prisma.incident.findMany({
      where,
      select: ENDED_FIELDS,
      orderBy: [{ closedAt: 'desc' }, { id: 'desc' }],
      ...page,
    }),
    prisma.incident.count({ where }),
  ]);
  return [rows.map(endedSpan), count];
}

function endedSpan(row: EndedRow): IncidentSpan {
  const ended = String(row.closedAtMicros);
  return {
    subscription_id: row.subscriptionId,
    subscription_name: row.subscription.name,
    status: 'closed',
    since: String(row.openedAtMicros),
    until: ended,
    endpoint_changed_at: row.endpointChanged ? ended : null,
    failure_count: row.failures,
    last_success_at: null,
  };
}

function incidentView(span: IncidentSpan, evidence: Evidence | undefined): IncidentView {
  if (!evidence) throw new Error('no evidence for an incident');
  return { ...span, ...evidence.counts, causes: evidence.causes };
}
