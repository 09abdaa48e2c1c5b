import { type RotatingSecret, rotatingSecret, type SubscriptionFields } from '@runhook/contract';
import { containsText, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import type { HeaderColumns } from './custom-headers.ts';
import type { OptionColumns } from './delivery-options.ts';
import { columnsOf, SUBSCRIPTION_COLUMNS, type SubscriptionRow } from './fields.ts';
import type { LabelFilter } from './label-filters.ts';
import type { SignatureKeyColumns } from './signature-key.ts';

/** Identifies a subscription of an account. Deleted ones and those of other accounts are not found. */
export interface SubscriptionKey {
  accountId: number;
  id: string;
}

const WITH_SECRET = {
  ...SUBSCRIPTION_COLUMNS,
  hmacSecretCiphertext: true,
  nextHmacSecretCiphertext: true,
  signatureKeyCiphertext: true,
  nextSignatureKeyCiphertext: true,
  secretGeneration: true,
  headersCiphertext: true,
  formatOptionsCiphertext: true,
} satisfies Prisma.SubscriptionSelect;

export type SubscriptionWithSecret = Prisma.SubscriptionGetPayload<{ select: typeof WITH_SECRET }>;

/** Columns that are derived from the request and the stored row. */
export type DerivedColumns = HeaderColumns & SignatureKeyColumns & OptionColumns;

export async function insertSubscription(
  transaction: Prisma.TransactionClient,
  subscription: SubscriptionKey & {
    fields: SubscriptionFields;
    columns: DerivedColumns;
    hmacSecretCiphertext: string;
  },
): Promise<SubscriptionRow> {
  const { id, accountId, fields, columns, hmacSecretCiphertext } = subscription;
  return await transaction.subscription.create({
    data: {
      id,
      accountId: BigInt(accountId),
      ...columnsOf(fields),
      ...columns,
      active: fields.active ?? true,
      hmacSecretCiphertext,
    },
    select: SUBSCRIPTION_COLUMNS,
  });
}

/** Returns one subscription with its encrypted secret, or null. */
export async function findSubscription(
  prisma: PrismaClient,
  key: SubscriptionKey,
): Promise<SubscriptionWithSecret | null> {
  return await prisma.subscription.findFirst({ where: notDeleted(key), select: WITH_SECRET });
}

/** Returns the encrypted private key as a delivery needs it; null without a key pair. */
export function signatureKeyOf(row: SubscriptionWithSecret): RotatingSecret | null {
  const { signatureKeyCiphertext, nextSignatureKeyCiphertext, rotationEndsAtMicros } = row;
  if (signatureKeyCiphertext === null) return null;
  return rotatingSecret(signatureKeyCiphertext, nextSignatureKeyCiphertext, rotationEndsAtMicros);
}

/** Returns the encrypted secrets as a delivery needs them. */
export function rotatingSecretOf(row: SubscriptionWithSecret): RotatingSecret {
  const { hmacSecretCiphertext, nextHmacSecretCiphertext, rotationEndsAtMicros } = row;
  return rotatingSecret(hmacSecretCiphertext, nextHmacSecretCiphertext, rotationEndsAtMicros);
}

/** Null filters match everything. */
export interface SubscriptionFilters {
  active: boolean | null;
  failing: boolean | null;
  /** Matches a part of the name, endpoint or description, or the complete id. */
  search: string | null;
  /** Matches subscriptions that have any of these. */
  eventTypes: readonly string[] | null;
  /** Matches subscriptions that have all of these. */
  labels: readonly LabelFilter[];
}

/** Sort orders of the list; equal rows are sorted newest first. */
const ORDERS = {
  created_at: { createdAt: 'desc' },
  name: { name: 'asc' },
  dispatched_at: { dispatchedAt: { sort: 'desc', nulls: 'last' } },
  failing_since: { failingSince: { sort: 'desc', nulls: 'last' } },
} as const satisfies Record<string, Prisma.SubscriptionOrderByWithRelationInput>;

export type SubscriptionOrder = keyof typeof ORDERS;

export const SUBSCRIPTION_ORDERS = Object.keys(ORDERS) as SubscriptionOrder[];

/** Returns a page of an account's subscriptions and the number of matches. */
export async function listSubscriptions(
  prisma: PrismaClient,
  query: {
    accountId: number;
    filters: SubscriptionFilters;
    order: SubscriptionOrder;
    limit: number;
    offset: number;
  },
): Promise<{ rows: SubscriptionRow[]; totalCount: number }> {
  const { accountId, filters, order, limit, offset } = query;
  const where = { accountId: BigInt(accountId), deletedAt: null, ...filterConditions(filters) };
  const [rows, totalCount] = await Promise.all([
    prisma.subscription.findMany({
      where,
      select: SUBSCRIPTION_COLUMNS,
      orderBy: [ORDERS[order], { createdAt: 'desc' }, { id: 'desc' }],
      take: limit,
      skip: offset,
    }),
    prisma.subscription.count({ where }),
  ]);
  return { rows, totalCount };
}

/** Returns the number of the account's subscriptions, including inactive ones. */
export async function countSubscriptions(
  prisma: Pick<PrismaClient, 'subscription'>,
  accountId: number,
): Promise<number> {
  return await prisma.subscription.count({ where: { accountId: BigInt(accountId), deletedAt: null } });
}

function filterConditions(filters: SubscriptionFilters): Prisma.SubscriptionWhereInput {
  const { active, failing, search, eventTypes, labels } = filters;
  return {
    ...(eventTypes !== null && { eventTypes: { hasSome: [...eventTypes] } }),
    ...(labels.length > 0 && { AND: labels.map(labelCondition) }),
    ...(active !== null && { active }),
    ...(failing !== null && { failingSince: failing ? { not: null } : null }),
    ...(search !== null && {
      OR: [
        { name: containsText(search) },
        { clientUrl: containsText(search) },
        { description: containsText(search) },
        { id: search },
      ],
    }),
  };
}

/** A label without a value matches any value: all of them are texts. */
function labelCondition({ key, value }: LabelFilter): Prisma.SubscriptionWhereInput {
  return { labels: value === null ? { path: [key], string_contains: '' } : { path: [key], equals: value } };
}

/**
 * Replaces the fields in one statement. An undefined `active` keeps the stored value, but a new `client_url`
 * reactivates a subscription that failures deactivated. Returns null if the subscription does not exist, or if the
 * columns that the new ones were derived from have changed since it was read. Triggers set `updated_at` and `version`.
 * @param isConditional whether to update only if nothing was replaced since the subscription was read
 */
export async function updateSubscription(
  transaction: Prisma.TransactionClient,
  storedRow: SubscriptionWithSecret,
  fields: SubscriptionFields,
  columns: DerivedColumns,
  isConditional: boolean,
): Promise<SubscriptionRow | null> {
  // A new endpoint reactivates a subscription that failures deactivated, unless the request sets `active`.
  const isReactivated = storedRow.deactivateReason !== null && fields.client_url !== storedRow.clientUrl;
  const active = fields.active ?? (isReactivated ? true : undefined);
  const { id, accountId, clientUrl, signatureHeader, headersCiphertext, updatedAtMicros } = storedRow;
  const { signaturePublicKey, nextSignaturePublicKey, format, formatOptionsCiphertext } = storedRow;
  const hasStoredValues = headersCiphertext !== null || formatOptionsCiphertext !== null;
  const [row] = await transaction.subscription.updateManyAndReturn({
    where: {
      ...notDeleted({ id, accountId: Number(accountId) }),
      signatureHeader,
      headersCiphertext,
      signaturePublicKey,
      nextSignaturePublicKey,
      format,
      formatOptionsCiphertext,
      // Stored values must not be sent to another endpoint.
      ...(hasStoredValues && { clientUrl }),
      ...(isConditional && { updatedAtMicros }),
    },
    data: {
      ...columnsOf(fields),
      ...columns,
      ...(active !== undefined && { active }),
      // Activating clears the reason of the deactivation.
      ...(active === true && { deactivateReason: null }),
    },
    select: SUBSCRIPTION_COLUMNS,
  });
  return row ?? null;
}

/** Returns whether the subscription existed. Retention deletes its deliveries. */
export async function deleteSubscription(
  transaction: Prisma.TransactionClient,
  key: SubscriptionKey,
): Promise<boolean> {
  const { count } = await transaction.subscription.updateMany({
    where: notDeleted(key),
    data: { deletedAt: new Date() },
  });
  return count > 0;
}

/**
 * Returns the ids that are not jobs of the account, in input order. A deleted job is one of them, unless the stored
 * subscription lists it: the response of a GET can be sent back unchanged.
 */
export async function missingJobIds(
  prisma: PrismaClient,
  { id, accountId }: { id: string | null; accountId: number },
  jobIds: readonly number[],
): Promise<number[]> {
  if (jobIds.length === 0) return [];
  const stored =
    id === null
      ? null
      : await prisma.subscription.findFirst({
          where: notDeleted({ id, accountId }),
          select: { jobIds: true },
        });
  const jobs = await prisma.job.findMany({
    where: {
      accountId: BigInt(accountId),
      AND: [
        { id: { in: jobIds.map(BigInt) } },
        { OR: [{ deletedAt: null }, { id: { in: stored?.jobIds ?? [] } }] },
      ],
    },
    select: { id: true },
  });
  return withoutFound(jobIds, jobs);
}

/** Returns the ids that are not environments of the account, in input order. */
export async function missingEnvironmentIds(
  prisma: PrismaClient,
  accountId: number,
  ids: readonly number[],
): Promise<number[]> {
  if (ids.length === 0) return [];
  const where = { accountId: BigInt(accountId), id: { in: ids.map(BigInt) } };
  return withoutFound(ids, await prisma.environment.findMany({ where, select: { id: true } }));
}

/** Returns the ids that are not projects of the account, in input order. */
export async function missingProjectIds(
  prisma: PrismaClient,
  accountId: number,
  ids: readonly number[],
): Promise<number[]> {
  if (ids.length === 0) return [];
  const where = { accountId: BigInt(accountId), id: { in: ids.map(BigInt) } };
  return withoutFound(ids, await prisma.project.findMany({ where, select: { id: true } }));
}

function withoutFound(ids: readonly number[], rows: readonly { id: bigint }[]): number[] {
  const found = new Set(rows.map(({ id }) => Number(id)));
  return ids.filter((id) => !found.has(id));
}

function notDeleted({ id, accountId }: SubscriptionKey) {
  return { id, accountId: BigInt(accountId), deletedAt: null };
}
