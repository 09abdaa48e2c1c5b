import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { Bulkhead } from '../../src/http/bulkhead.ts';
import { memoryReservation, runWithMemory } from '../../src/http/large-bodies.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** A response that emits `close` when it is sent or destroyed. */
class FakeResponse extends EventEmitter {
  destroyed = false;
  writableFinished = false;
  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

const LIMITS = { slotsMax: 2, shareMax: 1, maxInFlight: 2, waitMs: 1_000 };
const reserve = (slots: Bulkhead, response: FakeResponse, accountId: number) =>
  memoryReservation(slots, response as never, () => accountId).reserve();

test('an account waits for its slot until its response is sent, while another account does not', async () => {
  const slots = new Bulkhead(LIMITS);
  const [first, second] = [new FakeResponse(), new FakeResponse()];
  await reserve(slots, first, 1);
  await reserve(slots, new FakeResponse(), 2);
  const waiting = reserve(slots, second, 1);
  expect(slots.waitingCount).toBe(1);
  await expect(reserve(slots, new FakeResponse(), 1)).rejects.toMatchObject({ statusCode: 429 });
  first.emit('close');
  await waiting;
  expect(slots.waitingCount).toBe(0);
});

test('a caller without a free slot gets a 503, and a second reservation of a request needs no second slot', async () => {
  const slots = new Bulkhead(LIMITS);
  const memory = memoryReservation(slots, new FakeResponse() as never, () => 1);
  await memory.reserve();
  await memory.reserve();
  const late = expect(reserve(slots, new FakeResponse(), 1)).rejects.toMatchObject({ statusCode: 503 });
  jest.advanceTimersByTime(1_000);
  await late;
});

test('a read that waits for memory occupies no other slot, and is repeated with it', async () => {
  const slots = new Bulkhead(LIMITS);
  const requests = new Bulkhead({ ...LIMITS, slotsMax: 1 });
  const stalled = new FakeResponse();
  await reserve(slots, stalled, 1);
  const memory = memoryReservation(slots, new FakeResponse() as never, () => 1);
  const read = () =>
    requests.run(1, async () => {
      memory.require();
      return 'logs';
    });
  const reading = runWithMemory(memory, read);
  expect(await requests.run(2, async () => 'other')).toBe('other');
  expect(slots.waitingCount).toBe(1);
  stalled.emit('close');
  expect(await reading).toBe('logs');
});

test('a caller that does not read its response loses its connection and its slot after a minute', async () => {
  const slots = new Bulkhead(LIMITS);
  const stalled = new FakeResponse();
  await reserve(slots, stalled, 1);
  jest.advanceTimersByTime(60_000);
  expect(stalled.destroyed).toBe(true);
  const ended = new FakeResponse();
  ended.destroyed = true;
  await reserve(slots, ended, 1);
  await reserve(slots, new FakeResponse(), 1);
});
