import pg from 'pg';
import type { Queryable } from './open-database.ts';

/**
 * SQLSTATEs of transient errors: connection exceptions, insufficient resources, operator intervention, a read-only
 * server, timeouts of a lock or a statement, serialization failures and deadlocks.
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
 * Whether the database was unavailable, as opposed to rejecting the statement: the caller should respond with 503 or
 * retry. It never indicates a bad request.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof DatabaseUnreachableError) return true;
  if (error instanceof pg.DatabaseError) return TRANSIENT_SQLSTATE.test(error.code ?? '');
  return isPrismaUnavailable(error);
}

/** SQLSTATEs for invalid data: data exceptions, violated constraints, limits of a row. They are permanent. */
const DATA_SQLSTATE = /^(22|23|54)/;

/**
 * Whether the database rejected a statement for a reason other than its data, such as a missing column, table or
 * permission, which may be fixed later. Also true for transient errors of PostgreSQL, which
 * {@link isDatabaseUnavailable} distinguishes.
 */
export function isDatabaseRejecting(error: unknown): boolean {
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

/** Thrown by Runhook's code, the driver or JSON when a value cannot be encoded or decoded. Sockets do not throw these. */
function isEncodingError(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

/** Shape of Prisma's errors. Processes without Prisma Client must not load it to classify an error. */
interface PrismaErrorShape {
  code?: string;
  clientVersion?: string;
  meta?: { driverAdapterError?: { cause?: { kind?: string; originalCode?: string } } };
}

/** Whether Prisma created or wrapped the error: it adds its version to each. */
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
  // When a connection breaks during a query, Prisma adds its version to the driver's plain error.
  return error.name === 'Error' && clientVersion !== undefined;
}

/** Whether the table already has a row with the same unique key. */
export function isUniqueViolation(error: unknown, table: string): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505' && error.table === table;
}

/** A query got no response; `cause` is the driver's error. */
export class DatabaseUnreachableError extends Error {
  readonly code = 'database_unreachable';
}

/**
 * Runs one statement. The driver gives a lost connection no error code, so an error that is neither a response of
 * PostgreSQL nor a value that cannot be encoded becomes a {@link DatabaseUnreachableError}.
 * @param timeoutMs timeout for the response; the pool's when omitted
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
    throw new DatabaseUnreachableError('The database did not respond.', { cause: error });
  }
}
