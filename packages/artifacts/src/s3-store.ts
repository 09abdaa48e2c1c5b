import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import {
  type ArtifactStore,
  ArtifactStoreError,
  type ByteRange,
  EXTERNAL_FILE_BYTES_MAX,
  type ObjectKey,
  objectName,
  parseObjectName,
  SourceMonitor,
  type StoredObject,
} from './store.ts';

export interface S3Location {
  bucket: string;
  /** Empty, or ends with a slash. */
  prefix: string;
  /** URL of a server other than AWS. */
  endpoint?: string | undefined;
  /** As resolved by the SDK when omitted. */
  region?: string | undefined;
  /** {@link SILENCE_MAX_MS} when omitted. */
  silenceMaxMs?: number | undefined;
}

const CONNECT_TIMEOUT_MS = 3_000;
/** Longest time that the server is waited for. Must exceed the time that it takes to acknowledge a large object. */
const SILENCE_MAX_MS = 30_000;
/** Idle timeout of a connection. Must exceed the longest pause of a client that sends or receives a file (180 s). */
const SOCKET_TIMEOUT_MS = 200_000;
/** Must exceed the concurrent uploads and downloads of a process. */
const SOCKETS_MAX = 200;
const DELETE_SIZE_MAX = 1_000;
/** `NotFound` is that of a HEAD, which has no body; a missing bucket is another error. */
const MISSING_OBJECT = ['NoSuchKey', 'NotFound'];

const ignore = () => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

type Sdk = typeof import('@aws-sdk/client-s3');

/**
 * Store in a bucket of S3 or a compatible server. An object is sent with one request, as a stream of known length.
 * Loads the SDK with the first call, since it takes tens of megabytes.
 */
export function createS3Store(location: S3Location): ArtifactStore {
  const { bucket: Bucket, prefix, silenceMaxMs = SILENCE_MAX_MS } = location;
  let opened: Promise<{ sdk: Sdk; client: S3Client }> | null = null;
  const connect = () => {
    opened ??= openClient(location);
    return opened;
  };
  const keyOf = (key: ObjectKey) => `${prefix}${objectName(key)}`;

  /** Calls the server, which must respond within the longest silence. */
  async function call<T>(send: (options: { abortSignal: AbortSignal }) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), silenceMaxMs);
    try {
      return await send({ abortSignal: abort.signal });
    } finally {
      clearTimeout(timer);
    }
  }

  async function open(key: ObjectKey, range: ByteRange | null): Promise<Readable | null> {
    const { sdk, client } = await connect();
    const Range = range === null ? {} : { Range: `bytes=${range.start}-${range.end}` };
    const command = new sdk.GetObjectCommand({ Bucket, Key: keyOf(key), ...Range });
    const found = await unlessMissing(call((options) => client.send(command, options)));
    return found && (found.Body as Readable);
  }

  async function deletePage(keys: readonly ObjectKey[]): Promise<void> {
    const { sdk, client } = await connect();
    const Delete = { Objects: keys.map((key) => ({ Key: keyOf(key) })), Quiet: true };
    const command = new sdk.DeleteObjectsCommand({ Bucket, Delete });
    const { Errors = [] } = await translate(call((options) => client.send(command, options)));
    const [first] = Errors;
    if (first !== undefined)
      throw new ArtifactStoreError('unavailable', new Error(`${first.Code}: ${first.Message}`));
  }

  return {
    kind: 's3',
    fileBytesMax: EXTERNAL_FILE_BYTES_MAX,
    async put(key, content, bytes) {
      const { sdk, client } = await connect();
      const source = new SourceMonitor();
      const abort = new AbortController();
      const watch = new SilenceWatch(silenceMaxMs, () => abort.abort());
      const Body = Readable.from(watch.exceptWaiting(source.watch(content)), { objectMode: false });
      // The client of the SDK does not notice that a body ends with an error.
      Body.on('error', () => abort.abort());
      try {
        const command = new sdk.PutObjectCommand({ Bucket, Key: keyOf(key), Body, ContentLength: bytes });
        await client.send(command, { abortSignal: abort.signal });
      } catch (error) {
        throw source.preferSourceError(storeError(error));
      } finally {
        watch.stop();
        Body.destroy();
      }
    },
    open,
    async exists(key) {
      const { sdk, client } = await connect();
      const command = new sdk.HeadObjectCommand({ Bucket, Key: keyOf(key) });
      return (await unlessMissing(call((options) => client.send(command, options)))) !== null;
    },
    async delete(keys) {
      for (let start = 0; start < keys.length; start += DELETE_SIZE_MAX)
        await deletePage(keys.slice(start, start + DELETE_SIZE_MAX));
    },
    async *list() {
      const { sdk, client } = await connect();
      let ContinuationToken: string | undefined;
      do {
        const command = new sdk.ListObjectsV2Command({ Bucket, Prefix: prefix, ContinuationToken });
        const page = await translate(call((options) => client.send(command, options)));
        yield (page.Contents ?? []).flatMap(({ Key = '', LastModified }): StoredObject[] => {
          const key = parseObjectName(Key.slice(prefix.length));
          return key && LastModified ? [{ ...key, storedAt: LastModified }] : [];
        });
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
    },
    async close() {
      const open = await opened?.catch(() => null);
      open?.client.destroy();
    },
  };
}

/** Calls `onSilence` when the server takes no data and does not respond; a client that sends nothing is not its fault. */
class SilenceWatch {
  readonly #silenceMaxMs: number;
  readonly #onSilence: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(silenceMaxMs: number, onSilence: () => void) {
    this.#silenceMaxMs = silenceMaxMs;
    this.#onSilence = onSilence;
    this.#start();
  }

  /** Passes the content on. While its next chunk is waited for, nothing is expected of the server. */
  async *exceptWaiting(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    clearTimeout(this.#timer);
    try {
      for await (const chunk of content) {
        this.#start();
        yield chunk;
        clearTimeout(this.#timer);
      }
    } finally {
      this.#start();
    }
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #start(): void {
    clearTimeout(this.#timer);
    if (!this.#isStopped) this.#timer = setTimeout(this.#onSilence, this.#silenceMaxMs);
  }
}

async function openClient({ endpoint, region }: S3Location): Promise<{ sdk: Sdk; client: S3Client }> {
  const sdk = await import('@aws-sdk/client-s3');
  const client = new sdk.S3Client({
    // Buckets of other servers have no names in DNS.
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    ...(region !== undefined && { region }),
    // One retry: the caller repeats a call that gets a 503. The SDK does not retry a stream.
    maxAttempts: 2,
    // It would write lines of text to the log. Every error is thrown as well.
    logger: SILENT,
    // A checksum behind a stream makes the SDK ignore the pace of the server, so that it buffers the whole file, and not
    // every compatible server supports it. The table has the SHA-256 of each file.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SOCKET_TIMEOUT_MS,
      httpAgent: { maxSockets: SOCKETS_MAX, keepAlive: true },
      httpsAgent: { maxSockets: SOCKETS_MAX, keepAlive: true },
    },
  });
  return { sdk, client };
}

async function translate<T>(call: Promise<T>): Promise<T> {
  return await call.catch((error: unknown) => {
    throw storeError(error);
  });
}

async function unlessMissing<T>(call: Promise<T>): Promise<T | null> {
  return await call.catch((error: unknown) => {
    if (MISSING_OBJECT.includes((error as Error).name)) return null;
    throw storeError(error);
  });
}

/** Any failure may be temporary, also one of credentials or a bucket, which an operator fixes. */
function storeError(error: unknown): ArtifactStoreError {
  return new ArtifactStoreError('unavailable', error);
}
