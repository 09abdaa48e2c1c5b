// Uses no Node.js API: the console checks in the browser, the command line in Node.js.
import type { JobRunEvent } from './events.ts';
import { renderPayload } from './payload.ts';

/** A delivery as the user copied it, whose signature is to be checked. */
export interface DeliveryInput {
  body: string;
  /** The value of the signature header, or several header lines `name: value`. */
  header: string;
  secret: string;
  /** Name of the webhook's signature header, which selects the line if `header` has several. */
  signatureHeader: string;
}

/** The reason why a signature cannot be checked. */
export type Unreadable = 'no-body' | 'no-header' | 'no-secret' | 'masked' | 'no-timestamp' | 'no-signature';

/** A change to the body, header or secret that has to be reversed for the signature to match. */
export type Difference =
  | 'mark-added'
  | 'newline-added'
  | 'newline-removed'
  | 'crlf'
  | 'lf'
  | 'spaces'
  | 'escapes'
  | 'key-order'
  | 'secret-blanks'
  | 'secret-quotes'
  | 'secret-prefix'
  | 'key-decoded'
  | 'key-whole'
  | 'header-scheme'
  | 'header-capitals'
  | 'header-base64'
  | 'header-v1'
  | 'header-blanks';

/** The first byte at which the received and the signed body differ; its value is null in a body that ends there. */
export interface ByteDifference {
  /** Offset in the UTF-8 encoding, from 0. */
  offset: number;
  received: number | null;
  signed: number | null;
}

export type Verdict =
  | { kind: 'unreadable'; reason: Unreadable }
  | { kind: 'genuine' }
  /** The signature matches once these changes are reversed. `byte` is null if none of them changed the body. */
  | { kind: 'nearly'; differences: Difference[]; byte: ByteDifference | null }
  /** `isCanonical`: the body has exactly the format that Runhook sends, so the secret, header or a value is wrong. */
  | { kind: 'wrong'; isCanonical: boolean; webhookId: string | null };

/**
 * Checks the signature with WebCrypto, so that the browser can do it without sending anything. Also tries to reverse
 * the common changes to bodies, headers and secrets that copying, parsing and proxies cause.
 */
export async function checkSignature(delivery: DeliveryInput): Promise<Verdict> {
  const { body, secret } = delivery;
  if (body === '') return unreadable('no-body');
  if (delivery.header.trim() === '') return unreadable('no-header');
  if (secret.trim() === '') return unreadable('no-secret');
  const input = readHeader(delivery);
  if (typeof input === 'string') return unreadable(input);
  const found = await findMatch(delivery, input);
  if (found === null) {
    const canonical = canonicalBody(body);
    return { kind: 'wrong', isCanonical: canonical === body, webhookId: webhookIdOf(body) };
  }
  const { differences, signed } = found;
  if (differences.length === 0) return { kind: 'genuine' };
  return { kind: 'nearly', differences, byte: signed === body ? null : firstDifference(body, signed) };
}

function unreadable(reason: Unreadable): Verdict {
  return { kind: 'unreadable', reason };
}

/** The parsed signatures of a header: their bytes, deviations from the expected form, and the scheme. */
interface SignatureInput {
  signatures: { bytes: Uint8Array; differences: Difference[] }[];
  /** The text that the Standard Webhooks scheme signs before the body; null for the plain scheme. */
  prefix: string | null;
}

const HEADER_LINE = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)$/;

function readHeader({ header, signatureHeader, body }: DeliveryInput): SignatureInput | Unreadable {
  const headers = new Map<string, string>();
  for (const line of header.split(/\r?\n/)) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name !== undefined && value !== undefined) headers.set(name.toLowerCase(), value);
  }
  const standard = headers.get('webhook-signature');
  const plain = headers.get(signatureHeader.toLowerCase());
  const value = plain ?? standard ?? (headers.size === 0 ? header.replace(/\r?\n$/, '') : undefined);
  if (value === undefined) return 'no-signature';
  if (/^\s*\*+\s*$/.test(value)) return 'masked';
  const isStandard = /^\s*v1,/.test(value) || (plain === undefined && standard !== undefined);
  if (!isStandard) return { signatures: [readSignature(value)], prefix: null };
  const id = headers.get('webhook-id')?.trim() ?? eventIdOf(body);
  const timestamp = headers.get('webhook-timestamp')?.trim();
  if (id === null || timestamp === undefined) return 'no-timestamp';
  const signatures = value
    .trim()
    .split(/\s+/)
    .map((one) => ({
      bytes: fromBase64(one.replace(/^v1,/, '')) ?? NO_BYTES,
      differences: one.startsWith('v1,') ? [] : (['header-v1'] satisfies Difference[]),
    }));
  return { signatures, prefix: `${id}.${timestamp}.` };
}

const NO_BYTES = new Uint8Array();

/** Parses a signature of the plain scheme. Deviations from its form, 64 digits of lower-case hex, are differences. */
function readSignature(value: string): SignatureInput['signatures'][number] {
  const differences: Difference[] = [];
  let text = value.trim();
  if (text !== value) differences.push('header-blanks');
  const [, , rest] = /^(Bearer|Token|Basic|HMAC|sha256)[\s=:]+(.+)$/i.exec(text) ?? [];
  if (rest !== undefined) {
    text = rest;
    differences.push('header-scheme');
  }
  if (/^[0-9a-f]{64}$/i.test(text)) {
    if (text !== text.toLowerCase()) differences.push('header-capitals');
    return { bytes: fromHex(text), differences };
  }
  const decoded = fromBase64(text);
  if (decoded?.length === 32) return { bytes: decoded, differences: [...differences, 'header-base64'] };
  return { bytes: NO_BYTES, differences };
}

interface Match {
  differences: Difference[];
  /** The body that was signed. */
  signed: string;
}

/** Returns the match with the fewest differences, or null. */
async function findMatch({ body, secret }: DeliveryInput, input: SignatureInput): Promise<Match | null> {
  const matches: Match[] = [];
  for (const key of candidateKeys(secret, input.prefix !== null)) {
    const hmac = await crypto.subtle.importKey('raw', key.bytes, HMAC, false, ['sign']);
    for (const variant of candidateBodies(body)) {
      const signed = new TextEncoder().encode((input.prefix ?? '') + variant.body);
      const expected = new Uint8Array(await crypto.subtle.sign('HMAC', hmac, signed));
      for (const { bytes, differences } of input.signatures)
        if (areEqual(bytes, expected))
          matches.push({
            differences: [...variant.differences, ...key.differences, ...differences],
            signed: variant.body,
          });
    }
  }
  return matches.sort((a, b) => a.differences.length - b.differences.length)[0] ?? null;
}

const HMAC = { name: 'HMAC', hash: 'SHA-256' };
const SECRET_PREFIX = 'whsec_';

/** Returns candidate keys: the secret with common copying errors reversed, and the key of the other scheme. */
function candidateKeys(
  secret: string,
  isStandard: boolean,
): { bytes: Uint8Array<ArrayBuffer>; differences: Difference[] }[] {
  const texts: { text: string; differences: Difference[] }[] = [{ text: secret, differences: [] }];
  const trimmed = secret.trim();
  if (trimmed !== secret) texts.push({ text: trimmed, differences: ['secret-blanks'] });
  const unquoted = trimmed.replace(/^(["'])(.*)\1$/, '$2');
  if (unquoted !== trimmed) texts.push({ text: unquoted, differences: ['secret-quotes'] });
  if (!unquoted.startsWith(SECRET_PREFIX))
    texts.push({ text: SECRET_PREFIX + unquoted, differences: ['secret-prefix'] });
  return texts.flatMap(({ text, differences }) => {
    const textBytes = Uint8Array.from(new TextEncoder().encode(text));
    const decoded = fromBase64(text.slice(text.startsWith(SECRET_PREFIX) ? SECRET_PREFIX.length : 0));
    const byScheme = isStandard
      ? [
          { bytes: decoded, differences },
          { bytes: textBytes, differences: [...differences, 'key-whole' as const] },
        ]
      : [
          { bytes: textBytes, differences },
          { bytes: decoded, differences: [...differences, 'key-decoded' as const] },
        ];
    return byScheme.flatMap(({ bytes, differences }) =>
      bytes === null || bytes.length === 0 ? [] : [{ bytes, differences }],
    );
  });
}

/** Returns candidate bodies: the body before it was copied, decoded as text, or parsed and serialized again. */
function candidateBodies(body: string): { body: string; differences: Difference[] }[] {
  const variants: { body: string; differences: Difference[] }[] = [
    { body, differences: [] },
    { body: body.replace(/^\uFEFF/, ''), differences: ['mark-added'] },
    { body: body.replace(/(\r?\n)+$/, ''), differences: ['newline-added'] },
    { body: `${body}\n`, differences: ['newline-removed'] },
    { body: `${body}\r\n`, differences: ['newline-removed'] },
    { body: body.replaceAll('\r\n', '\n'), differences: ['crlf'] },
    { body: body.replaceAll(/\r?\n/g, '\r\n'), differences: ['lf'] },
  ];
  const canonical = canonicalBody(body);
  const compact = compactJson(body);
  for (const rewritten of new Set([canonical, compact]))
    if (rewritten !== null)
      variants.push({ body: rewritten, differences: [classifyRewrite(body, compact, rewritten)] });
  return variants.filter((variant, index) => index === 0 || variant.body !== body);
}

function classifyRewrite(body: string, compact: string | null, signed: string): Difference {
  if (compact !== signed) return 'key-order';
  return withoutSpaces(body) === signed ? 'spaces' : 'escapes';
}

/** Removes white space outside of strings, to find out whether two bodies differ only in that. */
function withoutSpaces(json: string): string {
  return json.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
}

function parseObject(body: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function compactJson(body: string): string | null {
  const value = parseObject(body);
  return value && JSON.stringify(value);
}

/** Serializes the body as Runhook does, regardless of white space and key order; null if it is not a payload. */
function canonicalBody(body: string): string | null {
  const value = parseObject(body);
  if (value === null || typeof value.data !== 'object' || value.data === null) return null;
  const { webhooksID, webhookName, accountId, eventId, timestamp, eventType, data } = value;
  if (typeof webhooksID !== 'string' || typeof webhookName !== 'string') return null;
  try {
    const event = { accountId, eventId, timestamp, eventType, data } as JobRunEvent;
    return renderPayload(event, { id: webhooksID, name: webhookName });
  } catch {
    // The event type is unknown.
    return null;
  }
}

function webhookIdOf(body: string): string | null {
  const id = parseObject(body)?.webhooksID;
  return typeof id === 'string' ? id : null;
}

function eventIdOf(body: string): string | null {
  const id = parseObject(body)?.eventId;
  return typeof id === 'string' ? id : null;
}

function firstDifference(received: string, signed: string): ByteDifference {
  const [a, b] = [new TextEncoder().encode(received), new TextEncoder().encode(signed)];
  let offset = 0;
  while (offset < a.length && offset < b.length && a[offset] === b[offset]) offset += 1;
  return { offset, received: a[offset] ?? null, signed: b[offset] ?? null };
}

function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[0-9A-Za-z+/_-]+=*$/.test(text)) return null;
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}
