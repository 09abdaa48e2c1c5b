import pg from 'pg';
import type { Queryable } from './open-database.ts';

/**
 * SQLSTATEs that say "not now": connection exceptions, out of resources, operator intervention, a read-only server; a
 * lock or a statement that took too long, and transactions that were in each other's way.
 */
const TRANSIENT_SQLSTATE = /^(08|53|57P|25006$|55P03$|57014$|40001$|40P01$)/;
const TRANSIENT_PRISMA_CODES = new Set([
  'P1001',
  'P1002',
  'P1008',
  'P1017',
  'P2024',
  'P2028',
  'P2034',
  'P2037',
]);
const TRANSIENT_ADAPTER_KINDS = new Set([
  'DatabaseNotReachable',
  'ConnectionClosed',
  'SocketTimeout',
  'TooManyConnections',
]);

/**
 * Whether the database could not be asked, as against having answered with an error: worth a 503 or another try,
 * and never a sign of a bad request.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof DatabaseUnreachableError) return true;
  if (error instanceof pg.DatabaseError) return TRANSIENT_SQLSTATE.test(error.code ?? '');
  return isPrismaUnavailable(error);
}

/** Data exceptions, violated constraints, limits of a row: what was written is at fault, and stays so. */
const DATA_SQLSTATE = /^(22|23|54)/;

/**
 * Whether the database answered that it refuses, for a reason that lies with us or with it and not with what was to be
 * written: a missing column or table, a permission. It may be mended meanwhile. Whether it could be asked at all is for
 * {@link isDatabaseUnavailable} to say.
 */
export function isDatabaseRefusing(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return !DATA_SQLSTATE.test(error.code ?? '');
  const code = (error as PrismaErrorShape | null)?.meta?.driverAdapterError?.cause?.originalCode;
  return code !== undefined && !DATA_SQLSTATE.test(code);
}

/**
 * Whether an error says that the data of a statement is invalid, so that its batch may be halved until the invalid item
 * is isolated. Errors of the store (unavailable, read-only, a missing table or permission) concern all items equally.
 */
export function isItemFault(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return DATA_SQLSTATE.test(error.code ?? '');
  return isEncodingError(error);
}

/** Thrown by our own code, the driver or JSON when a value cannot be encoded or decoded. Sockets do not throw these. */
function isEncodingError(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

/** Known by its shape: who has no Prisma Client, as the dispatcher, must not load it to look at an error. */
interface PrismaErrorShape {
  code?: string;
  clientVersion?: string;
  meta?: { driverAdapterError?: { cause?: { kind?: string; originalCode?: string } } };
}

/** Prisma gives its version to every error that it makes or wraps. */
export function isPrismaError(error: unknown): boolean {
  return error instanceof Error && (error as Error & PrismaErrorShape).clientVersion !== undefined;
}

function isPrismaUnavailable(error: Error): boolean {
  const { code, clientVersion, meta } = error as Error & PrismaErrorShape;
  if (error.name === 'PrismaClientInitializationError') return true;
  if (code !== undefined && TRANSIENT_PRISMA_CODES.has(code)) return true;
  const cause = meta?.driverAdapterError?.cause;
  if (cause?.kind !== undefined && TRANSIENT_ADAPTER_KINDS.has(cause.kind)) return true;
  if (cause?.originalCode !== undefined && TRANSIENT_SQLSTATE.test(cause.originalCode)) return true;
  // A connection that breaks in the middle of a query: the driver's plain error, to which Prisma adds its version.
  return error.name === 'Error' && clientVersion !== undefined;
}

/** There is such a row of the table already. */
export function isTaken(error: unknown, table: string): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505' && error.table === table;
}

/** A query of ours that got no answer; `cause` holds the driver's error. */
export class DatabaseUnreachableError extends Error {
  readonly code = 'database_unreachable';
}

/**
 * Runs one statement. The driver gives a lost connection no error code, so an error that is neither a response of
 * PostgreSQL nor a value that cannot be encoded becomes a {@link DatabaseUnreachableError}.
 * @param timeoutMs how long its answer is waited for; as long as the pool waits when omitted
 */
export async function runStatement<Row extends pg.QueryResultRow = pg.QueryResultRow>(
  database: Queryable,
  text: string,
  values: unknown[],
  name?: string,
  timeoutMs?: number,
): Promise<Row[]> {
  try {
    const query = {
      text,
      values,
      ...(name === undefined ? {} : { name }),
      ...(timeoutMs === undefined ? {} : { query_timeout: timeoutMs }),
    };
    return (await database.query<Row>(query)).rows;
  } catch (error) {
    if (error instanceof pg.DatabaseError || isEncodingError(error)) throw error;
    throw new DatabaseUnreachableError('The database did not answer.', { cause: error });
  }
}
