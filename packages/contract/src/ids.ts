import { hash, randomBytes } from 'node:crypto';

/** Prefixes of the ids that are made of a prefix and a KSUID. */
const PREFIXES = {
  subscription: 'wsu_',
  event: 'wev_',
  account: 'act_',
  delivery: 'wdl_',
  recovery: 'wrc_',
} as const;

export type IdKind = keyof typeof PREFIXES;

/**
 * Creates an id whose first two payload bytes encode the milliseconds, so that ids sort by creation time and an index
 * grows at its end. Random bytes there would insert among ids of the same second and split full index pages.
 */
export function createId(kind: IdKind, timeMs: number = Date.now()): string {
  const payload = randomBytes(PAYLOAD_BYTES);
  payload.writeUInt16BE(Math.floor(((timeMs % 1_000) * LIMB_BASE) / 1_000));
  return PREFIXES[kind] + createKsuid(timeMs, payload);
}

export function isId(kind: IdKind, value: unknown): value is string {
  return idTimeMs(kind, value) !== null;
}

/**
 * Returns the creation time of the id in milliseconds since the epoch (whole seconds), or null if it is not an id of
 * that kind.
 */
export function idTimeMs(kind: IdKind, value: unknown): number | null {
  const prefix = PREFIXES[kind];
  if (typeof value !== 'string' || !value.startsWith(prefix)) return null;
  return ksuidTimeMs(value.slice(prefix.length));
}

/** Returns the UTC day (`YYYY-MM-DD`) of the event's or delivery's partition. Throws on an id of another kind. */
export function idDay(kind: 'event' | 'delivery', id: string): string {
  const timeMs = idTimeMs(kind, id);
  if (timeMs === null) throw new TypeError(`not a ${kind} id: ${JSON.stringify(id)}`);
  return new Date(timeMs).toISOString().slice(0, 10);
}

/**
 * Returns the id of the only delivery of an event to a subscription. It is derived instead of random: a second fan-out
 * of the event generates the same keys, which the database rejects. Carries the event's time, hence its day partition.
 */
export function deliveryIdFor(eventId: string, subscriptionId: string): string {
  return derivedId('delivery', requiredTimeMs(eventId), `${eventId} ${subscriptionId}`);
}

/**
 * Returns the id of an event that was published without one: derived from its queue job, so that a second run of the
 * job agrees.
 */
export function eventIdForJob(jobId: string, jobTimestampMs: number): string {
  return derivedId('event', jobTimestampMs, `job ${jobId} ${jobTimestampMs}`);
}

function derivedId(kind: IdKind, timeMs: number, seed: string): string {
  return PREFIXES[kind] + createKsuid(timeMs, hash('sha256', seed, 'buffer').subarray(0, PAYLOAD_BYTES));
}

function requiredTimeMs(eventId: string): number {
  const timeMs = idTimeMs('event', eventId);
  if (timeMs === null) throw new TypeError(`not an event id: ${JSON.stringify(eventId)}`);
  return timeMs;
}

/**
 * A KSUID has 4 bytes of seconds since 2014-05-13T16:53:20Z and 16 bytes of payload, as 27 base62 characters. The text
 * sorts by time, and its time determines the day partition of the row.
 */
const EPOCH_SECONDS = 1_400_000_000;
const MAX_SECONDS = 0xffff_ffff;
const PAYLOAD_BYTES = 16;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const CODE_OF_DIGIT = Uint8Array.from(ALPHABET, (character) => character.charCodeAt(0));
const KSUID_LENGTH = 27;
const NO_DIGIT = 255;
const DIGIT_OF_CODE = new Uint8Array(128).fill(NO_DIGIT);
CODE_OF_DIGIT.forEach((code, digit) => {
  DIGIT_OF_CODE[code] = digit;
});

/**
 * 160 bits as ten 16-bit numbers, divided and multiplied by 62^5 at a time: every product is an exact double, which
 * takes a fraction of the time of BigInt. This matters because each delivery has an id.
 */
const LIMBS = 10;
const LIMB_BASE = 65_536;
const GROUP_DIGITS = 5;
const GROUP_BASE = 62 ** GROUP_DIGITS;

/** Shared buffers. They are safe because every call that uses them is synchronous. */
const limbs = new Array<number>(LIMBS).fill(0);
const digits = Buffer.alloc(KSUID_LENGTH);

/** @param payload {@link PAYLOAD_BYTES} bytes */
function createKsuid(timeMs: number, payload: Buffer): string {
  const seconds = Math.floor(timeMs / 1000) - EPOCH_SECONDS;
  if (!(seconds >= 0 && seconds <= MAX_SECONDS)) throw new RangeError(`no KSUID has the time ${timeMs}`);
  limbs[0] = Math.floor(seconds / LIMB_BASE);
  limbs[1] = seconds % LIMB_BASE;
  for (let index = 2; index < LIMBS; index += 1) limbs[index] = payload.readUInt16BE(2 * index - 4);
  for (let end = KSUID_LENGTH; end > 0; end -= GROUP_DIGITS) {
    let rest = divideByGroup();
    for (let position = end - 1; position >= 0 && position >= end - GROUP_DIGITS; position -= 1) {
      digits[position] = CODE_OF_DIGIT[rest % 62] as number;
      rest = Math.floor(rest / 62);
    }
  }
  return digits.toString('latin1');
}

/** Returns the KSUID's time in milliseconds since the epoch (whole seconds), or null if the text is not a KSUID. */
function ksuidTimeMs(text: string): number | null {
  if (text.length !== KSUID_LENGTH) return null;
  let head = 0;
  for (let index = 0; index < KSUID_LENGTH; index += 1) {
    const digit = DIGIT_OF_CODE[text.charCodeAt(index)] ?? NO_DIGIT;
    if (digit === NO_DIGIT) return null;
    if (index < HEAD_DIGITS) head = head * 62 + digit;
  }
  const seconds = secondsFromHead(head) ?? secondsFromDigits(text);
  return seconds === null || seconds > MAX_SECONDS ? null : (seconds + EPOCH_SECONDS) * 1000;
}

const HEAD_DIGITS = 8;
const SECONDS_PER_HEAD = 62 ** (KSUID_LENGTH - HEAD_DIGITS) / 2 ** 128;
/** Tolerance that exceeds the rounding error of the doubles used here. */
const ROUNDING_TOLERANCE = 1e-5;

/**
 * Computes the seconds of a KSUID from its first digits only; null if the remaining digits could change the result,
 * which happens for one id in twenty thousand.
 */
function secondsFromHead(head: number): number | null {
  const least = Math.floor(head * SECONDS_PER_HEAD - ROUNDING_TOLERANCE);
  const most = Math.floor((head + 1) * SECONDS_PER_HEAD + ROUNDING_TOLERANCE);
  return least === most ? least : null;
}

/** Computes the seconds from all digits; null if they exceed 160 bits. */
function secondsFromDigits(text: string): number | null {
  limbs.fill(0);
  let group = 0;
  for (let index = 0; index < KSUID_LENGTH; index += 1) {
    group = group * 62 + (DIGIT_OF_CODE[text.charCodeAt(index)] as number);
    // The first group has fewer digits.
    if ((KSUID_LENGTH - 1 - index) % GROUP_DIGITS !== 0) continue;
    if (multiplyByGroup(group) > 0) return null;
    group = 0;
  }
  return (limbs[0] as number) * LIMB_BASE + (limbs[1] as number);
}

/** Divides `limbs` in place and returns the remainder. */
function divideByGroup(): number {
  let remainder = 0;
  for (let index = 0; index < LIMBS; index += 1) {
    const value = remainder * LIMB_BASE + (limbs[index] as number);
    const quotient = Math.floor(value / GROUP_BASE);
    limbs[index] = quotient;
    // This is exact, and ten times as fast as `%` for numbers of this size.
    remainder = value - quotient * GROUP_BASE;
  }
  return remainder;
}

/** Multiplies `limbs` in place, adds `addend`, and returns the overflow beyond 160 bits. */
function multiplyByGroup(addend: number): number {
  let carry = addend;
  for (let index = LIMBS - 1; index >= 0; index -= 1) {
    const value = (limbs[index] as number) * GROUP_BASE + carry;
    limbs[index] = value % LIMB_BASE;
    carry = Math.floor(value / LIMB_BASE);
  }
  return carry;
}
