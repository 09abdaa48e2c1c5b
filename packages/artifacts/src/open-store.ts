import { isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Queryable } from '@runhook/database';
import { createFileStore } from './file-store.ts';
import { createS3Store, type S3Location } from './s3-store.ts';
import type { ArtifactStore } from './store.ts';
import { createTableStore } from './table-store.ts';

/** The store that `ARTIFACTS_URL` selects (docs/configuration.md#both-services). */
export type ArtifactsLocation =
  | ({ kind: 's3' } & Pick<S3Location, 'bucket' | 'prefix'>)
  | { kind: 'file'; folder: string };

const BUCKET_PATTERN = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const PREFIX_PATTERN = /^(?:[A-Za-z0-9._-]+\/)*$/;

/** Parses `ARTIFACTS_URL`. @throws Error with a sentence that does not contain the value */
export function parseArtifactsUrl(text: string): ArtifactsLocation {
  const [, scheme, rest = ''] = /^(s3|file):\/\/(.*)$/.exec(text) ?? [];
  if (scheme === 's3') return parseS3(rest);
  if (scheme === 'file') return { kind: 'file', folder: folderOf(text) };
  throw new Error('must be s3://bucket/prefix or file:///folder');
}

function parseS3(rest: string): ArtifactsLocation {
  const [bucket = '', ...folders] = rest.split('/');
  const path = folders.join('/');
  const prefix = path === '' || path.endsWith('/') ? path : `${path}/`;
  if (!BUCKET_PATTERN.test(bucket)) throw new Error('must name a bucket: s3://bucket/prefix');
  if (!PREFIX_PATTERN.test(prefix)) throw new Error('must have a prefix of letters, digits and . _ - /');
  return { kind: 's3', bucket, prefix };
}

function folderOf(text: string): string {
  try {
    const folder = fileURLToPath(text);
    if (isAbsolute(folder)) return folder;
  } catch {}
  throw new Error('must name an absolute folder of this host: file:///folder');
}

/** Opens the store; it connects with the first call. @param location the table of the database when omitted */
export function openArtifactStore(options: {
  location: ArtifactsLocation | undefined;
  database: Queryable;
  s3: Pick<S3Location, 'endpoint' | 'region'>;
}): ArtifactStore {
  const { location, database, s3 } = options;
  if (location === undefined) return createTableStore(database);
  if (location.kind === 'file') return createFileStore(location.folder);
  return createS3Store({ ...location, ...s3 });
}
