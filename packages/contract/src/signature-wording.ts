export { checkSignature, type DeliveryInput, type Verdict } from './check-signature.ts';

import type { ByteDifference, Difference, Unreadable, Verdict } from './check-signature.ts';

const UNREADABLE: Readonly<Record<Unreadable, string>> = {
  'no-body': 'The body is missing: enter it exactly as your endpoint received it.',
  'no-header': 'The signature header is missing: enter it as your endpoint received it.',
  'no-secret': 'The secret is missing: enter the one that your endpoint verifies with.',
  masked:
    'This is the mask of the log, which does not store signatures. Use the header that your endpoint received.',
  'no-timestamp':
    'webhook-signature also covers webhook-id and webhook-timestamp. Add these headers, each as a line “name: value”.',
  'no-signature': 'None of these headers is the signature header.',
};

const DIFFERENCES: Readonly<Record<Difference, string>> = {
  'mark-added':
    'A byte order mark was added before the body. Some editors add one: use the bytes as received.',
  'newline-added':
    'A trailing newline was added to the body. Editors and “echo” add one: use the bytes as received.',
  'newline-removed': 'A trailing newline was removed from the body. Use the bytes as received.',
  crlf: 'The line breaks of the body were changed to CRLF. Use the bytes as received, not as text.',
  lf: 'The line breaks of the body were changed from CRLF to LF. Use the bytes as received, not as text.',
  spaces:
    'The body was parsed and serialized again: its white space differs. Verify the raw bytes before they are parsed.',
  escapes:
    'The body was parsed and serialized again: its escapes differ. Verify the raw bytes before they are parsed.',
  'key-order':
    'The body was parsed and serialized again: the order of its keys differs. Verify the raw bytes before they are parsed.',
  'secret-blanks': 'The secret has white space around it. Trim it where your endpoint reads it.',
  'secret-quotes': 'The secret has quotes around it. Remove them.',
  'secret-prefix': 'The prefix “whsec_” is missing: it is part of the secret.',
  'key-decoded':
    'The key was the decoded secret. For this header, use the complete text, including “whsec_”.',
  'key-whole':
    'The key was the complete text of the secret. For webhook-signature, use the part after “whsec_”, decoded from base64.',
  'header-scheme':
    'The signature has a prefix. The header contains only the signature, without “Bearer” or “sha256=”.',
  'header-capitals': 'The signature is in upper case. It is sent in lower-case hex.',
  'header-base64': 'The signature is in base64. It is sent in lower-case hex.',
  'header-v1': 'The version “v1,” before the signature is missing.',
  'header-blanks': 'The signature has white space around it.',
};

/** Names of characters that are not visible, by code. */
const CHARACTERS: Readonly<Record<number, string>> = {
  9: 'a tab',
  10: 'a line feed',
  13: 'a carriage return',
  32: 'a space',
};

function formatByte(byte: number | null): string {
  if (byte === null) return 'nothing, because it ends there';
  const hex = `0x${byte.toString(16).padStart(2, '0')}`;
  const name = CHARACTERS[byte] ?? (byte > 32 && byte < 127 ? `“${String.fromCharCode(byte)}”` : null);
  return name === null ? hex : `${name} (${hex})`;
}

/** "Byte 480 differs: your body has a line feed (0x0a), the signed body has nothing, because it ends there." */
export function formatDifference({ offset, received, signed }: ByteDifference): string {
  return `Byte ${offset} differs: your body has ${formatByte(received)}, the signed body has ${formatByte(signed)}.`;
}

interface VerdictWording {
  tone: 'good' | 'bad' | 'neutral';
  title: string;
  lines: string[];
}

/** @param webhookId id of the webhook that the user checks; null if unknown */
export function formatVerdict(verdict: Verdict, webhookId: string | null): VerdictWording {
  switch (verdict.kind) {
    case 'unreadable':
      return { tone: 'neutral', title: 'Not checked yet', lines: [UNREADABLE[verdict.reason]] };
    case 'genuine':
      return {
        tone: 'good',
        title: 'The signature is valid',
        lines: [
          'This body was signed with this secret. If your endpoint rejects it, it verifies another body, header or secret.',
        ],
      };
    case 'nearly':
      return {
        tone: 'bad',
        title: 'The signature would match without the following change',
        lines: [
          ...verdict.differences.map((difference) => DIFFERENCES[difference]),
          ...(verdict.byte === null ? [] : [formatDifference(verdict.byte)]),
        ],
      };
    case 'wrong':
      return { tone: 'bad', title: 'The signature is wrong', lines: formatWrong(verdict, webhookId) };
  }
}

function formatWrong(
  { isCanonical, webhookId }: Extract<Verdict, { kind: 'wrong' }>,
  expectedId: string | null,
): string[] {
  const other =
    webhookId !== null && expectedId !== null && webhookId !== expectedId
      ? [
          'The body is from another webhook, or from a test before the webhook was saved. These have different secrets.',
        ]
      : [];
  return isCanonical
    ? [
        ...other,
        'The body has exactly the format that Runhook sends, so the secret is wrong: it belongs to another webhook or has been rotated. Or a value in the body was changed.',
      ]
    : [
        ...other,
        'The body does not have the format that Runhook sends, and converting it to that format does not make the signature match. Use the raw bytes; then check the secret.',
      ];
}
