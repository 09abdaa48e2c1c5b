import { randomBytes } from 'node:crypto';

/**
 * KSUID: 4 bytes of seconds since 2014-05-13T16:53:20Z, then 16 bytes of payload, as 27 base62 characters. The
 * text sorts by time, and the time in it decides the day partition of what it names.
 */
const EPOCH_SECONDS = 1_400_000_000;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const LENGTH = 27;
const PATTERN = /^[0-9A-Za-z]{27}$/;
const MAX_VALUE = (1n << 160n) - 1n;

/** @param payload 16 bytes; random when omitted. */
export function createKsuid(timeMs: number, payload: Buffer = randomBytes(16)): string {
  const bytes = Buffer.allocUnsafe(20);
  bytes.writeUInt32BE(Math.floor(timeMs / 1000) - EPOCH_SECONDS, 0);
  payload.copy(bytes, 4, 0, 16);
  let value = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  while (text.length < LENGTH) {
    text = ALPHABET.charAt(Number(value % 62n)) + text;
    value /= 62n;
  }
  return text;
}

/** Milliseconds since the epoch that the KSUID carries (whole seconds), or null when the text is no KSUID. */
export function ksuidTimeMs(text: string): number | null {
  if (!PATTERN.test(text)) return null;
  let value = 0n;
  for (const character of text) value = value * 62n + BigInt(ALPHABET.indexOf(character));
  if (value > MAX_VALUE) return null;
  return (Number(value >> 128n) + EPOCH_SECONDS) * 1000;
}
