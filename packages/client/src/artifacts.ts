import type { Schemas } from './calls.ts';

/** A file of a run. */
export interface ArtifactReference {
  runId: number;
  /** Path of the file: `run_results.json`. */
  path: string;
  /** Number of the step that wrote the file. */
  step?: number | undefined;
  /** Default: the account of the client. */
  accountId?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Uploads and downloads files of runs (docs/contract.md#artifacts). */
export interface ArtifactCalls {
  /** Uploads a file of up to 64 MiB, in place of one of the same path and step. Repeats the call as others are repeated. */
  putArtifact(
    file: ArtifactReference & { content: Uint8Array | Blob | string },
  ): Promise<Schemas['Artifact']>;
  /**
   * Downloads a file. The body of the response must be read or cancelled.
   * @param file.step without it the file of that path that was uploaded last
   */
  getArtifact(file: ArtifactReference): Promise<Response>;
}

/** Returns the address of a file, relative to that of the service. */
export function artifactPath(
  { runId, path, step }: ArtifactReference,
  accountId: number | undefined,
): string {
  if (accountId === undefined) throw new TypeError('an artifact needs account_id');
  const parts = path.split('/');
  // A URL resolves these: the call would go to another endpoint.
  if (parts.some((part) => ['', '.', '..'].includes(part)))
    throw new TypeError('the path of an artifact must have no empty segments, "." and ".."');
  const segments = parts.map(encodeURIComponent).join('/');
  const query = step === undefined ? '' : `?step=${step}`;
  return `api/v2/accounts/${accountId}/runs/${runId}/artifacts/${segments}${query}`;
}

/** The service ends an upload that is slower than 64 KiB/s: the largest takes 17 minutes. */
export const UPLOAD_TIMEOUT_MS = 1_200_000;
