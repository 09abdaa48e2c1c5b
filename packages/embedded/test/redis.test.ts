import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { findRedisServer, startRedis } from '../src/index.ts';
import { isRunning, orphanServer } from './orphan-server.ts';
import { temporaryFolder } from './temporary-folder.ts';

const describeWithRedis = findRedisServer() === null ? describe.skip : describe;

describeWithRedis('startRedis', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let dataDir: string;

  beforeEach(async () => {
    folder = await temporaryFolder();
    dataDir = join(folder.path, 'queue');
  });

  afterEach(() => folder.remove());

  test('an append-only server has its keys after a restart and does not evict keys', async () => {
    const first = await startRedis({ dataDir, appendOnly: true });
    await sendCommand(first.url, (client) => client.set('key', 'kept'));
    expect(await sendCommand(first.url, (client) => client.config('GET', 'maxmemory-policy'))).toContain(
      'noeviction',
    );
    await first.stop();
    expect(await first.exited).toBe(0);

    const second = await startRedis({ dataDir, appendOnly: true });
    expect(await sendCommand(second.url, (client) => client.get('key'))).toBe('kept');
    await second.stop();
  });

  test('data is not persisted by default, and a port that is in use is skipped', async () => {
    const first = await startRedis({ dataDir, databases: 300 });
    await sendCommand(`${first.url}/299`, (client) => client.set('key', 'lost'));
    const concurrent = await startRedis({ dataDir: join(folder.path, 'beside'), port: first.port });
    expect(concurrent.port).not.toBe(first.port);
    await concurrent.stop();
    await first.stop();

    const second = await startRedis({ dataDir, databases: 300 });
    expect(await sendCommand(`${second.url}/299`, (client) => client.get('key'))).toBeNull();
    await second.kill();
    expect(await second.exited).toBeNull();
  });

  test('a server left by a killed parent is stopped first, because two servers on one folder would corrupt it', async () => {
    const orphan = await orphanServer('startRedis', { dataDir, appendOnly: true }, async ({ url }) => {
      await sendCommand(url, (client) => client.set('key', 'by an orphan'));
    });
    expect(await isRunning(orphan)).toBe(true);
    const redis = await startRedis({ dataDir, appendOnly: true });
    expect(await isRunning(orphan)).toBe(false);
    expect(await sendCommand(redis.url, (client) => client.get('key'))).toBe('by an orphan');
    await expect(startRedis({ dataDir, appendOnly: true })).rejects.toMatchObject({ code: 'in-use' });
    await redis.stop();
  });
});

async function sendCommand<T>(url: string, command: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url);
  try {
    return await command(client);
  } finally {
    client.disconnect();
  }
}
