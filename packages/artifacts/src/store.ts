import type { Readable } from 'node:stream';

/** Identifies the content of one upload. */
export interface ObjectKey {
  accountId: number;
  runId: number;
  /** A UUID in lower case. */
  objectId: string;
}

/** An object of the store, with the time at which it was written. */
export interface StoredObject extends ObjectKey {
  storedAt: Date;
}

/** First and last byte, both inclusive. */
export interface ByteRange {
  start: number;
  end: number;
}

/**
 * Store of the contents of artifacts. Objects are written once and never changed; the table `artifacts` names the current
 * object of each file. Every call may throw an {@link ArtifactStoreError}, or the error of an unavailable database.
 */
export interface ArtifactStore {
  readonly kind: 'table' | 's3' | 'file';
  /** Size limit of a file. */
  readonly fileBytesMax: number;
  /**
   * Stores `bytes` bytes. If it throws, a part of them may be stored and readable: the caller deletes the key, or leaves
   * that to `deleteOrphans`.
   * @throws the error of `content`, which must be thrown if there are fewer or more bytes
   */
  put(key: ObjectKey, content: AsyncIterable<Uint8Array>, bytes: number): Promise<void>;
  /** Returns the bytes of a range, or null if there is no such object. The caller must read or destroy the stream. */
  open(key: ObjectKey, range: ByteRange | null): Promise<Readable | null>;
  exists(key: ObjectKey): Promise<boolean>;
  /** Deletes objects; a key without an object is ignored. */
  delete(keys: readonly ObjectKey[]): Promise<void>;
  /** Yields all objects in pages, including the rests of interrupted writes. */
  list(): AsyncGenerator<StoredObject[], void>;
  close(): Promise<void>;
}

/** `full`: there is no space left. `unavailable`: any other failure, whose cause may be temporary. */
export class ArtifactStoreError extends Error {
  readonly code: 'artifact_store_unavailable' | 'artifact_store_full';

  constructor(reason: 'unavailable' | 'full', cause: unknown) {
    super(reason === 'full' ? 'The artifact store is full.' : 'The artifact store is unavailable.', {
      cause,
    });
    this.code = `artifact_store_${reason}`;
  }
}

/** Size limit of a file in a store outside of PostgreSQL. */
export const EXTERNAL_FILE_BYTES_MAX = 64 * 1024 * 1024;

/** Returns the name of an object: digits, slashes and a UUID, so it is safe as a path. */
export function objectName({ accountId, runId, objectId }: ObjectKey): string {
  return `${accountId}/${runId}/${objectId}`;
}

const NAME_PATTERN = /^([1-9]\d{0,15})\/([1-9]\d{0,15})\/([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/;

/** Parses {@link objectName}; null for the name of anything else, which must be left alone. */
export function parseObjectName(name: string): ObjectKey | null {
  const [, accountId, runId, objectId] = NAME_PATTERN.exec(name) ?? [];
  if (objectId === undefined) return null;
  return { accountId: Number(accountId), runId: Number(runId), objectId };
}

/**
 * Passes the content on and records its error, which distinguishes a failure of the uploader from one of the store, whose
 * client may wrap or replace it.
 */
export class SourceMonitor {
  #error: unknown;
  #hasFailed = false;

  async *watch(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    try {
      yield* content;
    } catch (error) {
      this.#error = error;
      this.#hasFailed = true;
      throw error;
    }
  }

  /** Returns the error of the content if it failed, else `storeError`. */
  preferSourceError(storeError: unknown): unknown {
    return this.#hasFailed ? this.#error : storeError;
  }
}
