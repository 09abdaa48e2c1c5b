import { Readable } from 'node:stream';
import { column, type Queryable, queryRows, runStatement } from '@runhook/database';
import type { ArtifactStore, ByteRange, ObjectKey } from './store.ts';

/** Size of every part but the last one. */
const PART_BYTES = 256 * 1024;
/** Larger files do not belong into a database, whose backups and replicas contain each of them. */
const FILE_BYTES_MAX = 5 * 1024 * 1024;
const LIST_PAGE_SIZE = 1_000;

/**
 * Store in the table `artifact_contents`. Each part is a separate statement, so that neither a connection nor a
 * transaction is held while a client sends or receives.
 */
export function createTableStore(database: Queryable): ArtifactStore {
  return {
    kind: 'table',
    fileBytesMax: FILE_BYTES_MAX,
    async put(key, content) {
      let part = 0;
      for await (const bytes of inParts(content)) {
        await runStatement(database, INSERT_PART, [...keyValues(key), part, bytes], 'insert-artifact-part');
        part += 1;
      }
    },
    async open(key, range) {
      // The first part is read now, so that a small file arrives whole even if it is replaced meanwhile.
      const first = await readPart(database, key, partOf(range));
      return first && Readable.from(readParts(database, key, range, first), { objectMode: false });
    },
    exists: (key) => hasParts(database, key),
    async delete(keys) {
      for (const key of keys)
        await runStatement(database, DELETE_OBJECT, keyValues(key), 'delete-artifact-object');
    },
    async *list() {
      let after: unknown[] = [0, 0, '00000000-0000-0000-0000-000000000000'];
      while (true) {
        const rows = await queryRows(database, LISTED, LIST_OBJECTS, [...after, LIST_PAGE_SIZE]);
        const objects = rows.map(({ account_id, run_id, object_id, created_ms }) => ({
          accountId: Number(account_id),
          runId: Number(run_id),
          objectId: object_id,
          storedAt: new Date(created_ms),
        }));
        yield objects;
        const last = objects.at(-1);
        if (last === undefined || objects.length < LIST_PAGE_SIZE) return;
        after = keyValues(last);
      }
    },
    close: async () => undefined,
  };
}

const INSERT_PART = `
  INSERT INTO artifact_contents (account_id, run_id, object_id, part, content) VALUES ($1, $2, $3, $4, $5)`;
const DELETE_OBJECT = `
  DELETE FROM artifact_contents WHERE account_id = $1 AND run_id = $2 AND object_id = $3 RETURNING part`;
const HAS_PARTS = `
  SELECT true AS found FROM artifact_contents
  WHERE account_id = $1 AND run_id = $2 AND object_id = $3 AND part = 0`;
const READ_PART = `
  SELECT content FROM artifact_contents
  WHERE account_id = $1 AND run_id = $2 AND object_id = $3 AND part = $4`;
// A write that was deleted before its end may have left any part.
const LIST_OBJECTS = `
  SELECT DISTINCT ON (account_id, run_id, artifact_contents.object_id) account_id, run_id, object_id::text AS object_id,
    floor(extract(epoch FROM created_at) * 1000)::float8 AS created_ms
  FROM artifact_contents
  WHERE (account_id, run_id, object_id) > ($1, $2, $3)
  ORDER BY account_id, run_id, artifact_contents.object_id, part LIMIT $4`;

const LISTED = {
  account_id: column.digits,
  run_id: column.digits,
  object_id: column.text,
  created_ms: column.float,
};
const isBuffer = (value: unknown): value is Buffer => Buffer.isBuffer(value);

function keyValues({ accountId, runId, objectId }: ObjectKey): unknown[] {
  return [accountId, runId, objectId];
}

async function hasParts(database: Queryable, key: ObjectKey): Promise<boolean> {
  return (await queryRows(database, { found: column.flag }, HAS_PARTS, keyValues(key))).length > 0;
}

/** Yields parts of equal size and a shorter last one; one empty part for no content, so that the object exists. */
async function* inParts(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void> {
  let chunks: Uint8Array[] = [];
  let length = 0;
  let count = 0;
  for await (const chunk of content) {
    chunks.push(chunk);
    length += chunk.length;
    while (length >= PART_BYTES) {
      const buffered = Buffer.concat(chunks);
      yield buffered.subarray(0, PART_BYTES);
      count += 1;
      chunks = [buffered.subarray(PART_BYTES)];
      length -= PART_BYTES;
    }
  }
  if (length > 0 || count === 0) yield Buffer.concat(chunks);
}

function partOf(range: ByteRange | null): number {
  return Math.floor((range?.start ?? 0) / PART_BYTES);
}

async function readPart(database: Queryable, key: ObjectKey, part: number): Promise<Buffer | null> {
  const values = [...keyValues(key), part];
  const [row] = await queryRows(database, { content: isBuffer }, READ_PART, values, 'read-artifact-part');
  return row?.content ?? null;
}

async function* readParts(
  database: Queryable,
  key: ObjectKey,
  range: ByteRange | null,
  firstContent: Buffer,
): AsyncGenerator<Buffer, void> {
  const { start, end } = range ?? { start: 0, end: Number.POSITIVE_INFINITY };
  let content: Buffer | null = firstContent;
  for (let part = partOf(range); content !== null; ) {
    const first = part * PART_BYTES;
    const bytes = content.subarray(Math.max(0, start - first), end - first + 1);
    if (bytes.length > 0) yield bytes;
    part += 1;
    if (content.length < PART_BYTES || part * PART_BYTES > end) return;
    content = await readPart(database, key, part);
  }
}
