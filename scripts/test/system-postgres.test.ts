import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { inTemporaryFolder } from './temporary-folder.ts';

const { findSystemPostgres } = (await import(
  String(new URL('./run/system-postgres.mjs', import.meta.url))
)) as {
  findSystemPostgres(options: { major?: string; folder: string }): object | null;
};

async function writeFiles(folder: string, ...paths: string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), '');
  }
}

const server = (version: string) => [`${version}/bin/postgres`, `${version}/bin/initdb`];

test('findSystemPostgres finds the oldest supported server of the system, and whether it has JIT', () =>
  inTemporaryFolder(async (folder) => {
    const withJit = [...server('16'), '16/lib/llvmjit.so'];
    await writeFiles(folder, ...server('14'), '15/bin/pg_dump', ...server('17'), ...withJit);
    const found = { folder: join(folder, '16'), version: '16', hasJit: true };
    expect(findSystemPostgres({ folder })).toEqual(found);
    const named = { folder: join(folder, '17'), version: '17', hasJit: false };
    expect(findSystemPostgres({ folder, major: '17' })).toEqual(named);
  }));

test('findSystemPostgres finds nothing when there is no supported server', () =>
  inTemporaryFolder(async (folder) => {
    await writeFiles(folder, ...server('14'));
    expect(findSystemPostgres({ folder })).toBeNull();
    expect(findSystemPostgres({ folder: join(folder, 'missing') })).toBeNull();
  }));
