import { SchemaBehindError } from './schema.ts';
import { isDatabaseUnavailable } from './statements.ts';

/** Reason why the services cannot work with a database, independent of the statement. */
export interface ConnectionProblem {
  /** Code for programs. `database_unavailable` may end without intervention; the others need an operator. */
  code:
    | 'database_login_rejected'
    | 'database_missing'
    | 'database_permission'
    | 'database_pooler'
    | 'database_not_migrated'
    | 'database_unavailable';
  /** Description for operators, without any part of the URL. */
  sentence: string;
}

const POOLER: ConnectionProblem = {
  code: 'database_pooler',
  sentence:
    'The pooler of DATABASE_URL loses prepared statements: set pool_mode = session, or use PgBouncer 1.21 or newer with max_prepared_statements = 200.',
};

/** Problems by SQLSTATE, for errors that concern access to the database and not a particular statement. */
const REJECTIONS: Record<string, ConnectionProblem> = {
  '28000': {
    code: 'database_login_rejected',
    sentence: 'The database rejects the user of DATABASE_URL.',
  },
  '28P01': {
    code: 'database_login_rejected',
    sentence: 'The database rejects the user or the password of DATABASE_URL.',
  },
  '3D000': {
    code: 'database_missing',
    sentence: 'The server of DATABASE_URL has no database of that name.',
  },
  '42501': {
    code: 'database_permission',
    sentence: 'The user of DATABASE_URL lacks a permission in the database.',
  },
  '42P05': POOLER,
  '26000': POOLER,
};

const NOT_MIGRATED: ConnectionProblem = {
  code: 'database_not_migrated',
  sentence: 'The database lacks tables of this version: apply the migrations first, with the same version.',
};

/** Returns null for an error that is unrelated to the connection. */
export function findConnectionProblem(error: unknown): ConnectionProblem | null {
  if (error instanceof SchemaBehindError) return NOT_MIGRATED;
  const rejection = REJECTIONS[errorCode(error)];
  if (rejection !== undefined) return rejection;
  if (!isDatabaseUnavailable(error)) return null;
  const code = systemErrorCode(error);
  return {
    code: 'database_unavailable',
    sentence: `The database of DATABASE_URL cannot be reached${code === '' ? '' : ` (${code})`}.`,
  };
}

/** Returns the sentence with the server's message, which names the user or the database: for operators only. */
export function describeConnectionProblem(error: unknown): string | null {
  const problem = findConnectionProblem(error);
  if (problem === null || problem.code === 'database_unavailable' || problem === NOT_MIGRATED)
    return problem?.sentence ?? null;
  return `${problem.sentence.slice(0, -1)}: ${(error as Error).message}.`;
}

/** Returns the error code of the operating system or PostgreSQL, preferring the driver's error in `cause`. */
function systemErrorCode(error: unknown): string {
  const code = errorCode((error as Error).cause) || errorCode(error);
  return /^[A-Z0-9_]+$/.test(code) ? code : '';
}

function errorCode(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : '';
  return typeof code === 'string' ? code : '';
}
