import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { createId, deliveryIdFor, eventIdForJob, idDay, idTimeMs, isId } from '@runhook/contract';
import KSUID from 'ksuid';

test('an id is its prefix and a KSUID that the reference library parses', () => {
  const timeMs = Date.UTC(2026, 0, 31, 23, 59, 59);
  const id = createId('event', timeMs);
  expect(id).toMatch(/^wev_[0-9A-Za-z]{27}$/);
  expect(KSUID.parse(id.slice(4)).date.getTime()).toBe(timeMs);
  expect(idTimeMs('event', id)).toBe(timeMs);
  expect(idDay('event', id)).toBe('2026-01-31');
});

test('ids from the reference library are parsed', () => {
  const ksuid = KSUID.randomSync(new Date('2026-11-21T00:00:00Z'));
  expect(idTimeMs('subscription', `wsu_${ksuid.string}`)).toBe(Date.UTC(2026, 10, 21));
});

test('the reference library and createId() agree on a thousand ids in both directions', () => {
  for (let index = 0; index < 1_000; index += 1) {
    const timeMs = (1_400_000_000 + Math.floor(Math.random() * 4_294_967_295)) * 1000;
    const theirs = KSUID.fromParts(timeMs, randomBytes(16));
    expect(idTimeMs('event', `wev_${theirs.string}`)).toBe(timeMs);
    const ours = createId('event', timeMs).slice(4);
    expect(KSUID.parse(ours).string).toBe(ours);
    expect(KSUID.parse(ours).date.getTime()).toBe(timeMs);
  }
});

test('the smallest and the largest KSUID are parsed, and a larger one is rejected', () => {
  expect(idTimeMs('event', `wev_${'0'.repeat(27)}`)).toBe(1_400_000_000_000);
  expect(idTimeMs('event', 'wev_aWgEPTl1tmebfsQzFP4bxwgy80V')).toBe((1_400_000_000 + 4_294_967_295) * 1000);
  expect(idTimeMs('event', 'wev_aWgEPTl1tmebfsQzFP4bxwgy80W')).toBeNull();
});

test('a payload of only zeros or only ones does not change the parsed time', () => {
  for (let index = 0; index < 1_000; index += 1) {
    const timeMs = (1_400_000_000 + Math.floor(Math.random() * 4_294_967_295)) * 1000;
    for (const fill of [0, 0xff]) {
      const theirs = KSUID.fromParts(timeMs, Buffer.alloc(16, fill));
      expect(idTimeMs('event', `wev_${theirs.string}`)).toBe(timeMs);
    }
  }
});

test('ids sort by their milliseconds, and two ids of the same millisecond differ', () => {
  const second = Date.UTC(2026, 10, 20, 12);
  const ids = Array.from({ length: 2_000 }, (_, ms) => createId('event', second + ms));
  expect([...ids].sort()).toEqual(ids);
  expect(new Set(Array.from({ length: 1_000 }, () => createId('event', second + 999))).size).toBe(1_000);
});

test('a time outside of the KSUID range is rejected', () => {
  expect(() => createId('event', 0)).toThrow(RangeError);
  expect(() => createId('event', Number.NaN)).toThrow(RangeError);
});

test.each([
  ['another prefix', `wsu_${'0'.repeat(27)}`],
  ['26 characters', `wev_${'0'.repeat(26)}`],
  ['28 characters', `wev_${'0'.repeat(28)}`],
  ['a character outside base62', `wev_${'0'.repeat(26)}-`],
  ['more than 160 bits', `wev_${'z'.repeat(27)}`],
  ['a number', 7],
  ['undefined', undefined],
])('isId() rejects %s', (_case, value) => {
  expect(isId('event', value)).toBe(false);
});

test('an event has one delivery id per subscription, in the day partition of the event', () => {
  const eventId = createId('event', Date.UTC(2026, 10, 20, 12));
  const first = deliveryIdFor(eventId, 'wsu_a');
  expect(deliveryIdFor(eventId, 'wsu_a')).toBe(first);
  expect(deliveryIdFor(eventId, 'wsu_b')).not.toBe(first);
  expect(idDay('delivery', first)).toBe('2026-11-20');
});

test('an event without an id gets the same id each time its job is read', () => {
  const nowMs = Date.UTC(2026, 10, 20, 12);
  expect(eventIdForJob('7', nowMs)).toBe(eventIdForJob('7', nowMs));
  expect(eventIdForJob('7', nowMs)).not.toBe(eventIdForJob('8', nowMs));
  expect(idTimeMs('event', eventIdForJob('7', nowMs))).toBe(nowMs);
});
