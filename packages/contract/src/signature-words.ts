export { checkSignature, type GivenDelivery, type Verdict } from './check-signature.ts';

import type { ByteDifference, Difference, Unreadable, Verdict } from './check-signature.ts';

const UNREADABLE: Readonly<Record<Unreadable, string>> = {
  'no-body': 'The body is missing: provide it as your endpoint received it.',
  'no-header': 'The signature header is missing: provide it as your endpoint received it.',
  'no-secret': 'The secret is missing: provide the one that your endpoint verifies with.',
  masked:
    'This is the mask of the log, which does not store signatures. Use the header that your endpoint received.',
  'no-timestamp':
    'webhook-signature covers webhook-id and webhook-timestamp, too. Provide these headers as well, each as a line “name: value”.',
  'no-signature': 'None of these headers is the signature header.',
};

const DIFFERENCES: Readonly<Record<Difference, string>> = {
  'mark-added':
    'A byte order mark was added before the body. Some editors do this: use the bytes as received.',
  'newline-added':
    'A trailing newline was added to the body. Editors and “echo” do this: use the bytes as received.',
  'newline-removed': 'A trailing newline was removed from the body. Use the bytes as received.',
  crlf: 'The line ends of the body became CRLF. Use the bytes as received, not as text.',
  lf: 'The line ends of the body were CRLF and became LF. Use the bytes as received, not as text.',
  spaces:
    'The body was parsed and serialized again: its white space differs. Verify the raw bytes before anything parses them.',
  escapes:
    'The body was parsed and serialized again: characters are escaped differently. Verify the raw bytes before anything parses them.',
  'key-order':
    'The body was parsed and serialized again: its keys are in another order. Verify the raw bytes before anything parses them.',
  'secret-blanks': 'The secret has white space around it. Trim it where your endpoint reads it.',
  'secret-quotes': 'The secret has quotes around it. They are not part of it.',
  'secret-prefix': 'The secret lacks its prefix: “whsec_” is part of it.',
  'key-decoded':
    'The key was the decoded secret. For this header, use the complete text, including “whsec_”.',
  'key-whole':
    'The key was the complete text of the secret. For webhook-signature, use the part after “whsec_”, decoded from base64.',
  'header-scheme':
    'The signature has a prefix. The header is the bare signature, without “Bearer” or “sha256=”.',
  'header-capitals': 'The signature is in upper case. It is sent in lower-case hex.',
  'header-base64': 'The signature is in base64. It is sent in lower-case hex.',
  'header-v1': 'The signature lacks its version prefix, “v1,”.',
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

/** @param webhookId id of the webhook that the user checks; null if unknown */
export function verdictWords(verdict: Verdict, webhookId: string | null): VerdictWords {
  switch (verdict.kind) {
    case 'unreadable':
      return { tone: 'neutral', title: 'Not checked yet', lines: [UNREADABLE[verdict.why]] };
    case 'genuine':
      return {
        tone: 'good',
        title: 'The signature is correct',
        lines: [
          'This body was signed with this secret. If your endpoint rejects it, it compares something else.',
        ],
      };
    case 'nearly':
      return {
        tone: 'bad',
        title: 'The signature would be correct, except for this',
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
      ? [
          'The body belongs to another webhook, or to a test of an unsaved webhook, which has a different secret.',
        ]
      : [];
  return isAsSent
    ? [
        ...other,
        'The body has exactly the form that Runhook sends, so the secret is wrong: it belongs to another webhook, or it was rotated. Or a value in the body was changed.',
      ]
    : [
        ...other,
        'The body does not have the form that Runhook sends, and normalizing it does not help. Use the raw bytes, then check the secret.',
      ];
}
