import { randomBytes, randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import type { ArtifactStore, ObjectKey } from '../src/store.ts';

export const newKey = (accountId = 1, runId = 7): ObjectKey => ({ accountId, runId, objectId: randomUUID() });

/** Yields the bytes in chunks that end at no boundary of a store. */
export async function* inChunks(bytes: Uint8Array, chunkBytes = 70_001): AsyncGenerator<Uint8Array, void> {
  for (let start = 0; start < bytes.length; start += chunkBytes)
    yield bytes.subarray(start, start + chunkBytes);
}

const BYTES = randomBytes(600_123);

/** Tests that every store must pass. */
export function testStore(store: () => ArtifactStore): void {
  const read = async (key: ObjectKey, range: { start: number; end: number } | null = null) => {
    const content = await store().open(key, range);
    return content === null ? null : Buffer.from(await buffer(content));
  };
  const listed = async () => {
    const keys: string[] = [];
    for await (const page of store().list()) keys.push(...page.map(({ objectId }) => objectId));
    return keys;
  };

  test.each([0, 1, 262_144, 600_123])('returns the %s bytes that were stored', async (length) => {
    const key = newKey();
    const bytes = BYTES.subarray(0, length);
    await store().put(key, inChunks(bytes), length);
    expect((await read(key))?.equals(bytes)).toBe(true);
    expect(await store().exists(key)).toBe(true);
  });

  test.each([
    [0, 0],
    [0, 600_122],
    [262_143, 262_144],
    [262_144, 300_000],
    [600_000, 600_122],
  ])('returns the range from %s to %s', async (start, end) => {
    const key = newKey();
    await store().put(key, inChunks(BYTES), BYTES.length);
    expect((await read(key, { start, end }))?.equals(BYTES.subarray(start, end + 1))).toBe(true);
  });

  test('has no object before it is stored, and none after it was deleted', async () => {
    const [key, other] = [newKey(), newKey()];
    expect(await read(key)).toBeNull();
    expect(await store().exists(key)).toBe(false);
    for (const one of [key, other]) await store().put(one, inChunks(BYTES), BYTES.length);
    await store().delete([key, newKey(2, 9)]);
    expect(await read(key)).toBeNull();
    expect(await store().exists(other)).toBe(true);
  });

  test('returns a small object that is deleted after it was opened', async () => {
    const key = newKey();
    await store().put(key, inChunks(BYTES.subarray(0, 100)), 100);
    const content = await store().open(key, null);
    await store().delete([key]);
    expect(content && (await buffer(content)).equals(BYTES.subarray(0, 100))).toBe(true);
  });

  test('lists the objects of all accounts with their times', async () => {
    const keys = [newKey(1, 1), newKey(1, 2), newKey(900, 1)];
    for (const key of keys) await store().put(key, inChunks(BYTES.subarray(0, 10)), 10);
    const found = await listed();
    for (const { objectId } of keys) expect(found).toContain(objectId);
    for await (const page of store().list())
      for (const { storedAt } of page)
        expect(Math.abs(storedAt.getTime() - Date.now())).toBeLessThan(3_600_000);
  });

  test('throws the error of an interrupted upload, and a deletion removes its rest', async () => {
    const key = newKey();
    const failure = new Error('the client has disconnected');
    async function* interrupted() {
      yield* inChunks(BYTES.subarray(0, 500_000));
      throw failure;
    }
    await expect(store().put(key, interrupted(), BYTES.length)).rejects.toBe(failure);
    // The table has the parts that arrived.
    await store().delete([key]);
    expect(await read(key)).toBeNull();
    expect(await listed()).not.toContain(key.objectId);
  });
}
