import { isDatabaseUnavailable } from '@runhook/database';
import { EnvironmentError } from '@runhook/runtime';
import { CommanderError } from 'commander';

/** A refusal that the operator is told of in a sentence. Everything else that is thrown is a fault of ours. */
export class AdminError extends Error {
  /** For scripts. */
  readonly code: string;
  readonly exitCode: number;

  constructor(code: string, message: string, exitCode = 1) {
    super(message);
    this.code = code;
    this.exitCode = exitCode;
  }
}

/** The command line is not one we take; nothing was done. The message names the option. */
export class UsageError extends AdminError {
  constructor(message: string) {
    super('usage', message, 2);
  }
}

/** What was named does not exist. */
export class NotFoundError extends AdminError {
  constructor(message: string) {
    super('not_found', message);
  }
}

/** What PostgreSQL says before any statement of ours could be wrong: how it is reached and what it holds. */
const CONNECTION_PROBLEMS: Record<string, [code: string, message: string]> = {
  '28000': ['database_login_refused', 'The database refuses the user of DATABASE_URL.'],
  '28P01': ['database_login_refused', 'The database refuses the user or the password of DATABASE_URL.'],
  '3D000': ['database_missing', 'The server of DATABASE_URL has no database of that name.'],
  '42501': ['database_permission', 'The user of DATABASE_URL may not do this in the database.'],
  '42P01': [
    'database_not_migrated',
    'The database lacks tables of this version: apply the migrations first, with the same version.',
  ],
};

/** As an error to tell: what the command line's parser and the database throw gets its sentence. */
export function adminError(error: unknown): AdminError {
  if (error instanceof AdminError) return error;
  if (error instanceof CommanderError) return new UsageError(parserMessage(error));
  if (error instanceof EnvironmentError) return new AdminError('environment', error.message);
  const problem = CONNECTION_PROBLEMS[sqlState(error) ?? ''];
  if (problem !== undefined) return new AdminError(...problem);
  if (isDatabaseUnavailable(error)) {
    return new AdminError(
      'database_unavailable',
      'The database of DATABASE_URL cannot be reached: is it running? (`npm start` must stay up while its database is used.)',
    );
  }
  return new AdminError('fault', `Something went wrong that should not have: ${withoutMessage(error)}`);
}

/** An unknown option is repeated without what was given to it, which may be a password. */
function parserMessage({ message }: CommanderError): string {
  const sentence = message.replace(/^error: /, '').replace(/'(--?[^=']*)=[\s\S]*'/, "'$1'");
  return sentence.replace(/\s+/g, ' ');
}

function sqlState(error: unknown): string | null {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null;
}

/** Where it happened, not what it says: a message of a driver may hold the values it was given. */
function withoutMessage(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const { code } = error as { code?: unknown };
  return [`${error.name}${typeof code === 'string' ? ` ${code}` : ''}`, ...frames].join('\n');
}
