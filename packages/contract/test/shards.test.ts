import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import {
  mappedShards,
  ONE_SHARD,
  parseShardMap,
  SHARD_SLOTS,
  SHARDS_KEY,
  SHARDS_MAX,
  type ShardMap,
  shardFields,
  shardOf,
  shardPrefix,
  shardsInUse,
  slotOf,
  spreadSlots,
} from '@runhook/contract';

const consecutive = (count: number) => [Array.from({ length: count }, (_, shard) => shard)];
const countSlots = ({ slots }: ShardMap) =>
  mappedShards({ ...ONE_SHARD, slots }).map((shard) => slots.filter((one) => one === shard).length);
const countMoved = (one: ShardMap, other: ShardMap) =>
  one.slots.filter((shard, slot) => shard !== other.slots[slot]).length;

describe('the slot of an account', () => {
  test('is the CRC-32 of its decimal digits, as zlib computes it, modulo 1,024', () => {
    for (const accountId of [0, 1, 42, 12_345, 123_456_789, 2 ** 53 - 1])
      expect(slotOf(accountId)).toBe(crc32(String(accountId)) % 1_024);
    // Fixed values that implementations in other languages must return.
    expect([1, 2, 42, 12_345].map(slotOf)).toEqual([951, 525, 136, 540]);
  });

  test('is distributed about equally over all slots', () => {
    const counts = new Array<number>(SHARD_SLOTS).fill(0);
    for (let accountId = 1; accountId <= 100_000; accountId += 1)
      counts[slotOf(accountId)] = (counts[slotOf(accountId)] ?? 0) + 1;
    expect(Math.min(...counts)).toBeGreaterThan(50);
    expect(Math.max(...counts)).toBeLessThan(150);
  });
});

test('the golden shards are those that slotOf() and shardPrefix() return', () => {
  const golden = JSON.parse(readFileSync(new URL('../golden/shards.json', import.meta.url), 'utf8'));
  expect([golden.key, golden.slots]).toEqual([SHARDS_KEY, SHARD_SLOTS]);
  const map = parseShardMap(golden.map);
  for (const { accountId, slot, prefix } of golden.accounts)
    expect([slotOf(accountId), shardPrefix(shardOf(map, accountId))]).toEqual([slot, prefix]);
  for (const slots of golden.rejected)
    expect(() => parseShardMap({ ...golden.map, slots })).toThrow(TypeError);
});

describe('a map of shards', () => {
  test('has one shard with the default prefix if none is stored', () => {
    const map = parseShardMap({ version: null, slots: null, draining: null });
    expect(map).toEqual({ version: 0, slots: new Array(1_024).fill(0), draining: [] });
    expect(shardOf(map, 42)).toBe(0);
    expect([0, 1, 63].map(shardPrefix)).toEqual(['{runhook}', '{runhook:1}', '{runhook:63}']);
  });

  test('is parsed to the value that was stored', () => {
    const map = spreadSlots(ONE_SHARD, consecutive(8));
    expect(parseShardMap(shardFields(map))).toEqual(map);
  });

  test.each([
    ['the version 0', { version: '0' }],
    ['one slot too few', { slots: JSON.stringify(new Array(1_023).fill(0)) }],
    ['a shard too high', { slots: JSON.stringify(new Array(1_024).fill(SHARDS_MAX)) }],
    ['no numbers', { slots: JSON.stringify(new Array(1_024).fill('0')) }],
    ['no JSON', { draining: '[' }],
    ['no draining', { draining: null }],
  ])('with %s is rejected', (_, changed) => {
    const fields = shardFields({ ...ONE_SHARD, version: 1 });
    expect(() => parseShardMap({ ...fields, ...changed })).toThrow(
      '{runhook}:shards does not contain a shard map',
    );
  });

  test('gives all shards of one server the same number of slots, or one more', () => {
    expect(countSlots(spreadSlots(ONE_SHARD, consecutive(8)))).toEqual(new Array(8).fill(128));
    const three = countSlots(spreadSlots(ONE_SHARD, consecutive(3)));
    expect(three.sort()).toEqual([341, 341, 342]);
    expect(countSlots(spreadSlots(ONE_SHARD, consecutive(64)))).toEqual(new Array(64).fill(16));
  });

  test('gives each master of a cluster the same number of slots, or one more, however many shards it has', () => {
    const servers = [[0, 3, 4], [1, 5, 7], [2, 6], []];
    const { slots } = spreadSlots(ONE_SHARD, servers);
    const shares = servers.map((shards) => slots.filter((shard) => shards.includes(shard)).length);
    expect(shares.slice(0, 3).sort()).toEqual([341, 341, 342]);
    expect(slots.filter((shard) => shard === 2)).toHaveLength(171);
  });

  test('moves no more slots than necessary when shards are added or removed', () => {
    const eight = spreadSlots(ONE_SHARD, consecutive(8));
    expect(countMoved(ONE_SHARD, eight)).toBe(1_024 - 128);
    expect(eight).toMatchObject({ version: 1, draining: [] });
    const nine = spreadSlots(eight, consecutive(9));
    // Only the slots of the ninth shard moved.
    expect(countMoved(eight, nine)).toBe(nine.slots.filter((shard) => shard === 8).length);
    const five = spreadSlots(nine, consecutive(5));
    expect(five.draining).toEqual([5, 6, 7, 8]);
    expect(countMoved(nine, five)).toBe(nine.slots.filter((shard) => shard >= 5).length);
    const one = spreadSlots(five, consecutive(1));
    expect(one).toEqual({ version: 4, slots: ONE_SHARD.slots, draining: [1, 2, 3, 4, 5, 6, 7, 8] });
    expect(shardsInUse(one)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    // A shard that is being drained may get slots again.
    expect(spreadSlots(one, consecutive(8)).draining).toEqual([8]);
  });
});
