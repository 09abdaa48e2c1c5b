export type ContentEncoding = 'br' | 'gzip' | 'identity';

/** The smaller first: what a client likes equally is decided by that. */
const PREFERRED = ['br', 'gzip'] as const;

/** What to send to a client by its `Accept-Encoding`; `identity` when it takes no other, or says nothing. */
export function chooseEncoding(header: string | undefined): ContentEncoding {
  const qualities = new Map((header ?? '').split(',').map(readQuality));
  const qualityOf = (name: string) => qualities.get(name) ?? qualities.get('*') ?? 0;
  const [best] = [...PREFERRED].sort((one, other) => qualityOf(other) - qualityOf(one));
  if (best === undefined || qualityOf(best) === 0) return 'identity';
  return qualityOf(best) >= (qualities.get('identity') ?? 0) ? best : 'identity';
}

/** `gzip;q=0.5` */
function readQuality(part: string): [name: string, quality: number] {
  const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
  const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return [name, quality === undefined ? 1 : Number(quality) || 0];
}
