import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

export type ContentEncoding = 'br' | 'gzip';

/** In order of preference: `br` takes as much CPU as `gzip` at these levels, and is smaller. */
const ENCODINGS: readonly ContentEncoding[] = ['br', 'gzip'];

/** Texts that are shorter cost more CPU to compress than their transfer saves. */
const CHARACTERS_MIN = 2_048;

/**
 * Returns the encoding for a response, or null if it is sent as it is: the text is short, or `Accept-Encoding` has none
 * of the supported encodings with a weight above 0.
 */
export function selectEncoding(text: string, acceptEncoding: string | undefined): ContentEncoding | null {
  if (acceptEncoding === undefined || text.length < CHARACTERS_MIN) return null;
  const weights = new Map(acceptEncoding.toLowerCase().split(',').map(parseWeight));
  const weightOf = (encoding: ContentEncoding) => weights.get(encoding) ?? weights.get('*') ?? 0;
  const weightMax = Math.max(...ENCODINGS.map(weightOf));
  return weightMax === 0 ? null : (ENCODINGS.find((encoding) => weightOf(encoding) === weightMax) ?? null);
}

function parseWeight(item: string): [encoding: string, weight: number] {
  const [, encoding = '', weight = '1'] =
    /^\s*([\w*-]+)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?$/.exec(item) ?? [];
  return [encoding, Number(weight)];
}

const compressGzip = promisify(gzip);
const compressBrotli = promisify(brotliCompress);
const BROTLI_OPTIONS = {
  params: {
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_QUALITY]: 3,
  },
};

/** Compresses on a thread of libuv's pool. */
export async function compressText(text: string, encoding: ContentEncoding): Promise<Buffer> {
  return encoding === 'br' ? await compressBrotli(text, BROTLI_OPTIONS) : await compressGzip(text);
}
