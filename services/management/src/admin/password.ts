import { randomBytes } from 'node:crypto';
import { UsageError } from './errors.ts';

const GENERATED_BYTES = 15;
const CHARACTERS_MIN = 8;
/** Of UTF-16, as a sign-in counts them; three bytes of UTF-8 each, at most. */
const CHARACTERS_MAX = 1_000;
const READ_BYTES_MAX = CHARACTERS_MAX * 3 + '\r\n'.length;

/** Standard input, or what stands for it. */
export type Input = AsyncIterable<Buffer | string> & { isTTY?: boolean };

export interface PasswordChoice {
  password: string;
  /** Then the operator does not know it and must be shown it. */
  isGenerated: boolean;
}

/** A new password: read from `stdin` when the operator brings one, else 120 random bits. */
export async function choosePassword(
  { passwordStdin = false }: { passwordStdin?: boolean },
  stdin: Input,
): Promise<PasswordChoice> {
  if (passwordStdin) return { password: await readPassword(stdin), isGenerated: false };
  return { password: randomBytes(GENERATED_BYTES).toString('base64url'), isGenerated: true };
}

/** Everything up to the end of input; one line break at the end is not part of it. */
async function readPassword(stdin: Input): Promise<string> {
  if (stdin.isTTY) {
    throw new UsageError(
      '--password-stdin reads a pipe or a file, and standard input is a terminal that would show it.',
    );
  }
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    length += chunk.length;
    // Leaving the loop closes the stream: an endless one must not hold us.
    if (length > READ_BYTES_MAX) break;
  }
  const password = decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
  if (password.length < CHARACTERS_MIN || password.length > CHARACTERS_MAX) {
    throw new UsageError(
      `--password-stdin must bring a password of ${CHARACTERS_MIN} to ${CHARACTERS_MAX} characters.`,
    );
  }
  if (/\p{Cc}/u.test(password)) {
    throw new UsageError('--password-stdin must bring one line without control characters.');
  }
  return password;
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError('--password-stdin must bring text in UTF-8.');
  }
}
