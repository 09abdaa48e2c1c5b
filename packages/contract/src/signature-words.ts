export { checkSignature, type GivenDelivery, type Verdict } from './check-signature.ts';

import type { ByteDifference, Difference, Unreadable, Verdict } from './check-signature.ts';

const UNREADABLE: Readonly<Record<Unreadable, string>> = {
  'no-body': 'The body is missing: it is needed as your endpoint got it.',
  'no-header': 'The header with the signature is missing: it is needed as your endpoint got it.',
  'no-secret': 'The secret is missing: the one that your endpoint verifies with.',
  masked: 'This is the mask of the log, which keeps no signatures. Take the header that your endpoint got.',
  'no-timestamp':
    'webhook-signature is made over webhook-id and webhook-timestamp, too. Give these headers as well, each as a line “name: value”.',
  'no-signature': 'None of these headers is the one of the signature.',
};

const DIFFERENCES: Readonly<Record<Difference, string>> = {
  'mark-added':
    'A byte order mark was added before the body. Some editors do so: take the bytes as they came.',
  'newline-added':
    'A trailing newline was added to the body. Editors and “echo” do so: take the bytes as they came.',
  'newline-removed': 'A trailing newline was removed from the body. Take the bytes as they came.',
  crlf: 'The line ends of the body became CRLF. Take the bytes as they came, not as text.',
  lf: 'The line ends of the body were CRLF and became LF. Take the bytes as they came, not as text.',
  spaces:
    'The body was parsed and written again: its white space is another. Verify the raw bytes before anything parses them.',
  escapes:
    'The body was parsed and written again: characters are escaped another way. Verify the raw bytes before anything parses them.',
  'key-order':
    'The body was parsed and written again: its keys are in another order. Verify the raw bytes before anything parses them.',
  'secret-blanks': 'The secret has white space around it. Trim it where your endpoint reads it.',
  'secret-quotes': 'The secret has quotes around it. They are no part of it.',
  'secret-prefix': 'The secret lacks its beginning: “whsec_” is part of it.',
  'key-decoded': 'The key was the decoded secret. For this header it is the whole text, “whsec_” included.',
  'key-whole':
    'The key was the whole text of the secret. For webhook-signature it is the part after “whsec_”, decoded from base64.',
  'header-scheme':
    'The signature has a word before it. The header is the bare signature: no “Bearer”, no “sha256=”.',
  'header-capitals': 'The signature is in capitals. It is sent in lower-case hex.',
  'header-base64': 'The signature is in base64. It is sent in lower-case hex.',
  'header-v1': 'The signature lacks its version: “v1,” comes before it.',
  'header-blanks': 'The signature has white space around it.',
};

const CHARACTERS: Readonly<Record<number, string>> = {
  9: 'a tab',
  10: 'a line feed',
  13: 'a carriage return',
  32: 'a space',
};

function byteWords(byte: number | null): string {
  if (byte === null) return 'nothing: it ends there';
  const hex = `0x${byte.toString(16).padStart(2, '0')}`;
  const name = CHARACTERS[byte] ?? (byte > 32 && byte < 127 ? `“${String.fromCharCode(byte)}”` : null);
  return name === null ? hex : `${name} (${hex})`;
}

/** "Byte 480 differs: yours has a line feed (0x0a), what was signed has nothing: it ends there." */
export function differenceWords({ offset, given, signed }: ByteDifference): string {
  return `Byte ${offset} differs: yours has ${byteWords(given)}, what was signed has ${byteWords(signed)}.`;
}

interface VerdictWords {
  tone: 'good' | 'bad' | 'neutral';
  title: string;
  lines: string[];
}

/** @param webhookId whose delivery it should be; null when that is not known */
export function verdictWords(verdict: Verdict, webhookId: string | null): VerdictWords {
  switch (verdict.kind) {
    case 'unreadable':
      return { tone: 'neutral', title: 'Not checked yet', lines: [UNREADABLE[verdict.why]] };
    case 'genuine':
      return {
        tone: 'good',
        title: 'The signature is right',
        lines: [
          'This body was signed with this secret. If your endpoint refuses it, it compares something else.',
        ],
      };
    case 'nearly':
      return {
        tone: 'bad',
        title: 'The signature would be right, but for this',
        lines: [
          ...verdict.differences.map((difference) => DIFFERENCES[difference]),
          ...(verdict.byte === null ? [] : [differenceWords(verdict.byte)]),
        ],
      };
    case 'wrong':
      return { tone: 'bad', title: 'The signature is wrong', lines: wrongWords(verdict, webhookId) };
  }
}

function wrongWords(
  { isAsSent, webhookId }: Extract<Verdict, { kind: 'wrong' }>,
  expectedId: string | null,
): string[] {
  const other =
    webhookId !== null && expectedId !== null && webhookId !== expectedId
      ? ['The body is of another webhook, or of a test before it was saved: that has a secret of its own.']
      : [];
  return isAsSent
    ? [
        ...other,
        'The body has the very form in which Runhook sends it, so the secret is wrong: it is another webhook’s, or was rotated since. Or a value in the body is another.',
      ]
    : [
        ...other,
        'The body is not in the form in which Runhook sends it, and putting it into that form does not help. Take the raw bytes; then check the secret.',
      ];
}
