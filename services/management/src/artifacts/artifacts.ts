import { createHash, randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type ArtifactStore, ArtifactStoreError, type ByteRange, type ObjectKey } from '@runhook/artifacts';
import type { Pool, Queryable, Transaction } from '@runhook/database';
import { DeadlineError, withinDeadline } from '@runhook/runtime';
import { ApiError, BodyTooLargeError, ConflictError, NotFoundError } from '../http/errors.ts';
import type { FileUpload } from '../http/file-upload.ts';
import type { RecordedResponse } from '../http/idempotency.ts';
import type { Log } from '../http/request-telemetry.ts';
import { RUN_RESULTS } from './artifact-path.ts';
import { type ModelResult, ModelScanner } from './model-scanner.ts';
import {
  type ArtifactFile,
  type ArtifactRun,
  commitFile,
  countFilesOfRun,
  findArtifactRun,
  findFile,
  findNewestFile,
  sumBytesOfAccount,
} from './statements.ts';

/** Files of a run. */
const FILES_PER_RUN_MAX = 10_000;
/** Time that the store may take to confirm that it has a file, before a caller gets a 503. */
const CONFIRM_MS = 5_000;
/** Quota of an account if PostgreSQL is the store; other stores have one only if it is set. */
const TABLE_QUOTA_MB = 1_024;
const MB = 1024 * 1024;

export interface ArtifactsDependencies {
  pool: Pool;
  store: ArtifactStore;
  /** Quota of an account in MiB; that of the store when omitted. */
  accountMbMax?: number | undefined;
  /** Throws a 409 if another runner has claimed the run since. */
  renewLease(
    database: Queryable,
    lease: { accountId: number; runId: number; token: string },
  ): Promise<unknown>;
  log: Log;
}

/** A file to store. */
export interface ArtifactUpload {
  accountId: number;
  runId: number;
  path: string;
  /** 0 for none. */
  step: number;
  file: FileUpload;
  /** Token of the runner that has claimed the run; null for an upload without one. */
  leaseToken: string | null;
  /** Throws the rejection of a caller who may no longer upload. */
  confirmAccess(): Promise<void>;
  /** The last statements of the transaction. @param replaced whether there was such a file */
  record(transaction: Transaction, stored: ArtifactFile, replaced: boolean): Promise<RecordedResponse>;
}

/** Stores and reads the files of runs: contents in the store, everything else in PostgreSQL. */
export class Artifacts {
  readonly #deps: ArtifactsDependencies;

  constructor(deps: ArtifactsDependencies) {
    this.#deps = deps;
  }

  /**
   * Stores a file while it arrives. The file becomes visible, in place of the previous one of its path and step, with the
   * commit of its row; until then, and after any failure, readers find the previous one.
   */
  async upload({
    accountId,
    runId,
    path,
    step,
    file,
    leaseToken,
    confirmAccess,
    record,
  }: ArtifactUpload): Promise<RecordedResponse> {
    const { pool, renewLease } = this.#deps;
    const confirmRunner = async (database: Queryable) => {
      if (leaseToken !== null) await renewLease(database, { accountId, runId, token: leaseToken });
    };
    await confirmRunner(pool);
    const run = await this.#requireCapacity(pool, accountId, runId, file.bytes);
    const key = { accountId, runId, objectId: randomUUID() };
    const { sha256, models } = await this.#putContent(key, path, file, confirmAccess);
    const stored = { path, step, objectId: key.objectId, bytes: file.bytes, sha256 };
    const { response, previousObjectId } = await commitFile(
      pool,
      run,
      stored,
      models,
      async (transaction) => {
        await confirmRunner(transaction);
        // Other files may have used the quota while this one arrived.
        await this.#requireCapacity(transaction, accountId, runId, file.bytes);
      },
      async (transaction, previousObjectId) => ({
        response: await record(transaction, stored, previousObjectId !== null),
        previousObjectId,
      }),
    ).catch((error: unknown) => {
      // A rejection precedes the commit. After any other error the transaction may be committed nevertheless, so the
      // content stays; an orphan is deleted later.
      if (error instanceof ApiError) this.#deleteLater(key);
      throw error;
    });
    if (previousObjectId !== null) this.#deleteLater({ ...key, objectId: previousObjectId });
    return response;
  }

  /** Returns a file of a run. @param step null for any. Throws a 404 without it */
  async require(accountId: number, runId: number, path: string, step: number | null): Promise<ArtifactFile> {
    const file = await findFile(this.#deps.pool, { accountId, runId, path, step });
    if (!file) throw new NotFoundError('The run has no such artifact.');
    return file;
  }

  /** Opens the content of a file. Returns null if the store has none, or none any more because the file was replaced. */
  async open(
    accountId: number,
    runId: number,
    file: ArtifactFile,
    range: ByteRange | null,
  ): Promise<Readable | null> {
    const { store, log } = this.#deps;
    const key = { accountId, runId, objectId: file.objectId };
    const content = await store.open(key, range);
    content?.on('error', (err) => log.error({ err, ...key }, 'an artifact could not be read to its end'));
    return content;
  }

  /** Returns, and logs, the 404 of a file whose content the store has lost. */
  missing(accountId: number, runId: number, { path, objectId }: ArtifactFile): NotFoundError {
    const fields = { accountId, runId, objectId, code: 'artifact_missing' };
    this.#deps.log.error(fields, 'the store has no content of an artifact');
    return new NotFoundError(missingMessage(path));
  }

  /**
   * Checks, before a run's artifacts are marked as ingested, that the store has the file that was uploaded last. A run
   * without files does not depend on the store, and neither does one whose files are in PostgreSQL.
   */
  async confirmStored(accountId: number, runId: number): Promise<void> {
    const { pool, store } = this.#deps;
    if (store.kind === 'table') return;
    const file = await findNewestFile(pool, accountId, runId);
    if (!file) return;
    const exists = await withinDeadline(CONFIRM_MS, () =>
      store.exists({ accountId, runId, objectId: file.objectId }),
    ).catch((error: unknown) => {
      throw error instanceof DeadlineError ? new ArtifactStoreError('unavailable', error) : error;
    });
    if (!exists) throw new ConflictError(`${missingMessage(file.path)} Upload it again.`);
  }

  async #requireCapacity(
    database: Queryable,
    accountId: number,
    runId: number,
    bytes: number,
  ): Promise<ArtifactRun> {
    const { store, accountMbMax } = this.#deps;
    const run = await findArtifactRun(database, accountId, runId);
    if (!run) throw new NotFoundError();
    if (run.status === 'Queued') throw new ConflictError('The run has not started, so it has no artifacts.');
    if (bytes > store.fileBytesMax)
      throw new BodyTooLargeError(
        `The artifact store accepts up to ${store.fileBytesMax / MB} MiB per file.`,
      );
    if ((await countFilesOfRun(database, accountId, runId)) >= FILES_PER_RUN_MAX)
      throw new ConflictError(`A run has up to ${FILES_PER_RUN_MAX} artifacts.`);
    const quotaMb = accountMbMax ?? (store.kind === 'table' ? TABLE_QUOTA_MB : null);
    if (quotaMb !== null && (await sumBytesOfAccount(database, accountId)) + bytes > quotaMb * MB)
      throw new ConflictError(`The artifacts of an account take up to ${quotaMb} MiB, which are used.`);
    return run;
  }

  /**
   * Returns `models` only for a file that has them.
   * @param confirm throws if the content must be deleted
   */
  async #putContent(
    key: ObjectKey,
    path: string,
    file: FileUpload,
    confirm: () => Promise<void>,
  ): Promise<{ sha256: string; models: ModelResult[] | null | undefined }> {
    const hash = createHash('sha256');
    const scanner = path === RUN_RESULTS ? new ModelScanner() : null;
    async function* inspect(): AsyncGenerator<Uint8Array, void> {
      for await (const chunk of file.content()) {
        hash.update(chunk);
        scanner?.push(chunk);
        yield chunk;
      }
    }
    try {
      await this.#deps.store.put(key, inspect(), file.bytes);
      await confirm();
    } catch (error) {
      this.#deleteLater(key);
      throw error;
    }
    return { sha256: hash.digest('hex'), models: scanner?.end() };
  }

  /** Deletes an object that no row names. If this fails, it is deleted as an orphan. */
  #deleteLater(key: ObjectKey): void {
    const { store, log } = this.#deps;
    store.delete([key]).catch((err) => log.warn({ err, ...key }, 'artifact content not deleted'));
  }
}

function missingMessage(path: string): string {
  return `The content of ${path} is missing in the artifact store.`;
}
