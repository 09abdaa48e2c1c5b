import { EnvironmentError } from './environment.ts';

/** What the system says of an address that a server wants to listen on. */
const LISTENING_PROBLEMS: Record<string, string> = {
  EADDRINUSE: 'another process listens there already',
  EACCES: 'this account may not listen there',
  EADDRNOTAVAIL: 'no interface of this machine has that address (HOST)',
  ENOTFOUND: 'that name has no address (HOST)',
};

/**
 * Why a program did not start, for whoever runs it: one line for what is theirs to mend, one for each setting that is wrong,
 * and the stack of anything else, for that is a fault of ours.
 *
 * @param sentenceOf what else is theirs to mend; null for what it does not know
 */
export function startFailure(error: unknown, sentenceOf: (error: unknown) => string | null): string {
  if (error instanceof EnvironmentError) return error.message;
  const sentence = listeningProblem(error) ?? sentenceOf(error);
  if (sentence !== null) return sentence.replace(/\s*\n\s*/g, ' ');
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Known by the call that failed: a database that refuses connections has the same kind of code. */
function listeningProblem(error: unknown): string | null {
  const { syscall, code, address, hostname, port } = error as NodeJS.ErrnoException & {
    address?: string;
    hostname?: string;
    port?: number;
  };
  const problem = LISTENING_PROBLEMS[code ?? ''];
  const isListening = syscall === 'listen' || (syscall === 'getaddrinfo' && code === 'ENOTFOUND');
  if (!isListening || problem === undefined) return null;
  const place = [address ?? hostname, port].filter((part) => part !== undefined).join(':');
  return `Cannot listen on ${place}: ${problem}.`;
}
