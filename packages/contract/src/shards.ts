/*
 * Shards of the queue (docs/adr/0046-queue-shards.md). An account has a slot and a slot has a shard. The map of
 * slots to shards is stored with the queue, where publishers read it, so that they need no setting.
 */

/** Number of slots: far more than shards, so that shares are nearly equal and a change moves few slots. */
export const SHARD_SLOTS = 1_024;
export const SHARDS_MAX = 64;

/** Key of a Redis hash with the fields of {@link ShardFields}; if it does not exist, there is one shard, 0. */
export const SHARDS_KEY = '{runhook}:shards';

/** The map as stored. */
export interface ShardFields {
  /** Digits of a number that is incremented with each change. */
  version: string;
  /** JSON: {@link ShardMap.slots}. */
  slots: string;
  /** JSON: {@link ShardMap.draining}. */
  draining: string;
}

export interface ShardMap {
  /** 0 if no map has been stored. */
  version: number;
  /** The shard of each slot. */
  slots: readonly number[];
  /** Shards without slots that may still have jobs, or receive some from publishers that read an earlier map. */
  draining: readonly number[];
}

/** The map of an installation without shards. */
export const ONE_SHARD: ShardMap = {
  version: 0,
  slots: new Array<number>(SHARD_SLOTS).fill(0),
  draining: [],
};

/**
 * Returns the prefix of a shard's keys. Each shard has a hash tag, so that a Redis Cluster places shards on several
 * masters.
 */
export function shardPrefix(shard: number): string {
  return shard === 0 ? '{runhook}' : `{runhook:${shard}}`;
}

/** Returns the slot: CRC-32 (that of zlib) of the id's decimal digits, modulo {@link SHARD_SLOTS}. */
export function slotOf(accountId: number): number {
  let crc = 0xffff_ffff;
  const digits = String(accountId);
  for (let index = 0; index < digits.length; index += 1)
    crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ digits.charCodeAt(index)) & 0xff] as number);
  return ((crc ^ 0xffff_ffff) >>> 0) % SHARD_SLOTS;
}

export function shardOf(map: ShardMap, accountId: number): number {
  return map.slots[slotOf(accountId)] as number;
}

/** Returns the shards that have slots, in ascending order. */
export function mappedShards({ slots }: ShardMap): number[] {
  return [...new Set(slots)].sort((one, other) => one - other);
}

/** Returns the shards that may have jobs, in ascending order: those with slots and those that are being drained. */
export function shardsInUse(map: ShardMap): number[] {
  return [...new Set([...map.slots, ...map.draining])].sort((one, other) => one - other);
}

/**
 * Parses the stored map; returns {@link ONE_SHARD} if none is stored.
 * @throws TypeError if the fields are not a map: another program wrote them, and no job may be added by them
 */
export function parseShardMap(fields: Partial<Record<keyof ShardFields, string | null>>): ShardMap {
  const { version, slots, draining } = fields;
  if (!version && !slots && !draining) return ONE_SHARD;
  const map = { version: Number(version), slots: parseNumbers(slots), draining: parseNumbers(draining) };
  const isMap = Number.isSafeInteger(map.version) && map.version > 0 && map.slots.length === SHARD_SLOTS;
  if (!isMap) throw new TypeError(`${SHARDS_KEY} does not contain a shard map`);
  return map;
}

export function shardFields({ version, slots, draining }: ShardMap): ShardFields {
  return { version: String(version), slots: JSON.stringify(slots), draining: JSON.stringify(draining) };
}

function parseNumbers(text: string | null | undefined): number[] {
  let numbers: unknown;
  try {
    numbers = JSON.parse(text ?? '');
  } catch {
    numbers = null;
  }
  const isShard = (value: unknown) =>
    Number.isInteger(value) && Number(value) >= 0 && Number(value) < SHARDS_MAX;
  if (!Array.isArray(numbers) || !numbers.every(isShard))
    throw new TypeError(`${SHARDS_KEY} does not contain a shard map`);
  return numbers as number[];
}

/**
 * Returns the map for a different number of shards. Each server gets the same share of the slots, and so does each
 * shard of a server; as few slots as possible move. Shards that lose all slots are drained.
 * @param shardsByServer the shards from 0 on, each once, grouped by the server on which they are
 */
export function spreadSlots(map: ShardMap, shardsByServer: readonly (readonly number[])[]): ShardMap {
  const slotCounts = countValues(map.slots);
  const servers = shardsByServer.filter((shards) => shards.length > 0);
  const countsOfShards = (shards: readonly number[]) => shards.map((shard) => slotCounts.get(shard) ?? 0);
  const shares = apportion(
    SHARD_SLOTS,
    servers.map((shards) => sum(countsOfShards(shards))),
  );
  const remaining = new Map<number, number>();
  for (const [index, shards] of servers.entries()) {
    const parts = apportion(shares[index] as number, countsOfShards(shards));
    for (const [position, shard] of shards.entries()) remaining.set(shard, parts[position] as number);
  }
  const slots = map.slots.map((shard) => {
    const left = remaining.get(shard) ?? 0;
    if (left > 0) remaining.set(shard, left - 1);
    return left > 0 ? shard : null;
  });
  const free = [...remaining]
    .sort(([one], [other]) => one - other)
    .flatMap(([shard, left]) => Array(left).fill(shard));
  const spread = slots.map((shard) => shard ?? (free.shift() as number));
  const mapped = new Set(spread);
  const draining = shardsInUse(map).filter((shard) => !mapped.has(shard));
  return { version: map.version + 1, slots: spread, draining };
}

/**
 * Divides a total into integers that differ by at most 1. The entries with the largest `current` get the larger ones,
 * which moves the fewest slots.
 */
function apportion(total: number, current: readonly number[]): number[] {
  const base = Math.floor(total / current.length);
  const byCurrent = current
    .map((_, index) => index)
    .sort((one, other) => (current[other] ?? 0) - (current[one] ?? 0));
  const larger = new Set(byCurrent.slice(0, total - base * current.length));
  return current.map((_, index) => (larger.has(index) ? base + 1 : base));
}

function countValues(values: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb8_8320 : crc >>> 1;
  return crc;
});
