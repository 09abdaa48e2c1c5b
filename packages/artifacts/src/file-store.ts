import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import {
  type ArtifactStore,
  ArtifactStoreError,
  EXTERNAL_FILE_BYTES_MAX,
  type ObjectKey,
  objectName,
  parseObjectName,
  SourceMonitor,
  type StoredObject,
} from './store.ts';

/** Suffix of a file that is being written. */
const PARTIAL_SUFFIX = '.part';
/** A concurrent delete may remove the folder that a put has just made. */
const OPEN_TRIES_MAX = 3;

/**
 * Store in a folder of this host, for deployments with one host. A file is written under a temporary name, flushed to
 * the disk and renamed, so that a crash leaves either the complete file or a rest that no reader finds.
 */
export function createFileStore(folder: string): ArtifactStore {
  const pathOf = (key: ObjectKey) => join(folder, objectName(key));
  return {
    kind: 'file',
    fileBytesMax: EXTERNAL_FILE_BYTES_MAX,
    async put(key, content) {
      const path = pathOf(key);
      const partialPath = `${path}${PARTIAL_SUFFIX}`;
      const source = new SourceMonitor();
      try {
        const file = await openForWriting(partialPath);
        await writeAll(file, source.watch(content));
        await rename(partialPath, path);
        // This write, or a concurrent one, has made the folders of the run and of the account.
        for (const made of [dirname(path), dirname(dirname(path)), folder]) await syncFolder(made);
      } catch (error) {
        await rm(partialPath, { force: true }).catch(() => undefined);
        throw source.preferSourceError(storeError(error));
      }
    },
    async open(key, range) {
      const file = await ifPresent(open(pathOf(key)));
      if (file === null) return null;
      return file.createReadStream(range ?? {}) as Readable;
    },
    async exists(key) {
      return (await ifPresent(stat(pathOf(key)))) !== null;
    },
    async delete(keys) {
      for (const key of keys) {
        const path = pathOf(key);
        await attempt(rm(path, { force: true }));
        await attempt(rm(`${path}${PARTIAL_SUFFIX}`, { force: true }));
        await removeIfEmpty(dirname(path));
        await removeIfEmpty(dirname(dirname(path)));
      }
    },
    async *list() {
      for (const accountId of await idsIn(folder))
        for (const runId of await idsIn(join(folder, accountId)))
          yield await objectsIn(folder, `${accountId}/${runId}`);
    },
    close: async () => undefined,
  };
}

async function openForWriting(path: string): Promise<FileHandle> {
  for (let tries = 1; ; tries += 1) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    try {
      return await open(path, 'wx', 0o600);
    } catch (error) {
      if (!isMissing(error) || tries === OPEN_TRIES_MAX) throw error;
    }
  }
}

async function writeAll(file: FileHandle, content: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of content) {
      // A write may be short: on a disk that is full the rest fails.
      for (let offset = 0; offset < chunk.length; )
        offset += (await file.write(chunk, offset, chunk.length - offset)).bytesWritten;
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes new names in a folder durable. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function objectsIn(folder: string, runFolder: string): Promise<StoredObject[]> {
  const objects: StoredObject[] = [];
  for (const name of await namesIn(join(folder, runFolder))) {
    const key = parseObjectName(`${runFolder}/${basename(name, PARTIAL_SUFFIX)}`);
    const stats = key && (await ifPresent(stat(join(folder, runFolder, name))));
    if (key && stats) objects.push({ ...key, storedAt: stats.mtime });
  }
  return objects;
}

/** Returns the names of folders of this store: others, such as `lost+found`, may be unreadable. */
async function idsIn(path: string): Promise<string[]> {
  return (await namesIn(path)).filter((name) => /^[1-9]\d*$/.test(name));
}

async function namesIn(path: string): Promise<string[]> {
  return (await ifPresent(readdir(path))) ?? [];
}

async function removeIfEmpty(path: string): Promise<void> {
  await rmdir(path).catch((error: NodeJS.ErrnoException) => {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(error.code ?? '')) throw storeError(error);
  });
}

async function ifPresent<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (isMissing(error)) return null;
    throw storeError(error);
  }
}

async function attempt(work: Promise<void>): Promise<void> {
  await work.catch((error) => {
    throw storeError(error);
  });
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

function storeError(error: unknown): ArtifactStoreError {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return new ArtifactStoreError(['ENOSPC', 'EDQUOT'].includes(code) ? 'full' : 'unavailable', error);
}
