import { randomBytes } from 'node:crypto';

/**
 * KSUID: 4 bytes of seconds since 2014-05-13T16:53:20Z, then 16 bytes of payload, as 27 base62 characters. The
 * text sorts by time, and the time in it decides the day partition of what it names.
 */
const EPOCH_SECONDS = 1_400_000_000;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const LENGTH = 27;
const NO_DIGIT = 255;
const DIGIT_OF_CODE = new Uint8Array(128).fill(NO_DIGIT);
for (let digit = 0; digit < ALPHABET.length; digit += 1) DIGIT_OF_CODE[ALPHABET.charCodeAt(digit)] = digit;

/**
 * 160 bits as ten numbers of 16, divided and multiplied by 62^5 at a time: every product stays an exact number, and
 * an id costs a fraction of what BigInt would, which counts where each delivery has one.
 */
const LIMBS = 10;
const LIMB_BASE = 65_536;
const GROUP_DIGITS = 5;
const GROUP_BASE = 62 ** GROUP_DIGITS;

/** @param payload 16 bytes; random when omitted. */
export function createKsuid(timeMs: number, payload: Buffer = randomBytes(16)): string {
  const bytes = Buffer.allocUnsafe(2 * LIMBS);
  bytes.writeUInt32BE(Math.floor(timeMs / 1000) - EPOCH_SECONDS, 0);
  payload.copy(bytes, 4, 0, 16);
  const limbs = Array.from({ length: LIMBS }, (_, index) => bytes.readUInt16BE(2 * index));
  let text = '';
  while (text.length < LENGTH) text = groupText(divideByGroup(limbs)) + text;
  return text.slice(-LENGTH);
}

/** Milliseconds since the epoch that the KSUID carries (whole seconds), or null when the text is no KSUID. */
export function ksuidTimeMs(text: string): number | null {
  if (text.length !== LENGTH) return null;
  const limbs = new Array<number>(LIMBS).fill(0);
  let group = 0;
  for (let index = 0; index < LENGTH; index += 1) {
    const digit = DIGIT_OF_CODE[text.charCodeAt(index)] ?? NO_DIGIT;
    if (digit === NO_DIGIT) return null;
    group = group * 62 + digit;
    // The first group is the short one.
    if ((LENGTH - 1 - index) % GROUP_DIGITS !== 0) continue;
    if (multiplyByGroup(limbs, group) > 0) return null;
    group = 0;
  }
  const seconds = (limbs[0] as number) * LIMB_BASE + (limbs[1] as number);
  return (seconds + EPOCH_SECONDS) * 1000;
}

/** Divides in place and answers the remainder. */
function divideByGroup(limbs: number[]): number {
  let remainder = 0;
  for (let index = 0; index < LIMBS; index += 1) {
    const value = remainder * LIMB_BASE + (limbs[index] as number);
    limbs[index] = Math.floor(value / GROUP_BASE);
    remainder = value % GROUP_BASE;
  }
  return remainder;
}

/** Multiplies in place, adds, and answers what no longer fits in 160 bits. */
function multiplyByGroup(limbs: number[], addend: number): number {
  let carry = addend;
  for (let index = LIMBS - 1; index >= 0; index -= 1) {
    const value = (limbs[index] as number) * GROUP_BASE + carry;
    limbs[index] = value % LIMB_BASE;
    carry = Math.floor(value / LIMB_BASE);
  }
  return carry;
}

function groupText(group: number): string {
  let text = '';
  for (let rest = group; text.length < GROUP_DIGITS; rest = Math.floor(rest / 62)) {
    text = ALPHABET.charAt(rest % 62) + text;
  }
  return text;
}
