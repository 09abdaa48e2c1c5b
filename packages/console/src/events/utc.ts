// Times in shared URLs are absolute and in UTC, so that a URL means the same in every time zone.

const UTC = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(?::(\d{2}))?(?:\.0+)?Z$/;

/** Normalizes a time of a URL: `2026-11-20T10:00Z`, with seconds unless they are 0. Returns an empty string for an invalid time. */
export function readUtc(text: string): string {
  if (!UTC.test(text)) return '';
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? '' : utcText(date.getTime());
}

/** Formats a time as in a URL: `2026-11-20T10:00Z`, with seconds unless they are 0. */
export function utcText(timeMs: number): string {
  const text = new Date(timeMs).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length);
  return `${text.endsWith(':00') ? text.slice(0, -3) : text}Z`;
}

/** Parses a time of a URL. @param text a valid time, not empty */
export function utcMs(text: string): number {
  return new Date(text).getTime();
}

/** Converts a normalized time of a URL to the value of a `datetime-local` field. */
export function toFieldValue(text: string): string {
  return text.replace(/Z$/, '');
}

/** Parses the value of a `datetime-local` field as UTC. */
export function fromFieldValue(field: string): string {
  return field === '' ? '' : readUtc(`${field}Z`);
}
