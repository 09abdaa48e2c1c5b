import { EnvironmentError } from './environment.ts';

/** Explanations of the system's errors for listening on an address. */
const LISTENING_PROBLEMS: Record<string, string> = {
  EADDRINUSE: 'another process listens there already',
  EACCES: 'this account may not listen there',
  EADDRNOTAVAIL: 'no interface of this machine has that address (HOST)',
  ENOTFOUND: 'that name has no address (HOST)',
};

/**
 * Returns the reason why a program did not start, for the operator: one line for a problem that the operator can fix,
 * one line for each invalid setting, or the stack of any other error, which is a defect of Runhook.
 *
 * @param describe explains further errors that the operator can fix; null for unknown ones
 */
export function describeStartFailure(error: unknown, describe: (error: unknown) => string | null): string {
  if (error instanceof EnvironmentError) return error.message;
  const sentence = describeListeningProblem(error) ?? describe(error);
  if (sentence !== null) return sentence.replace(/\s*\n\s*/g, ' ');
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Checks the system call as well, because a database that refuses connections has the same kind of code. */
function describeListeningProblem(error: unknown): string | null {
  const { syscall, code, address, hostname, port } = error as NodeJS.ErrnoException & {
    address?: string;
    hostname?: string;
    port?: number;
  };
  const problem = LISTENING_PROBLEMS[code ?? ''];
  const isListening = syscall === 'listen' || (syscall === 'getaddrinfo' && code === 'ENOTFOUND');
  if (!isListening || problem === undefined) return null;
  const location = [address ?? hostname, port].filter((part) => part !== undefined).join(':');
  return `Cannot listen on ${location}: ${problem}.`;
}
