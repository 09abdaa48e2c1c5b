// Times that people share: absolute and of UTC, so that an address reads the same wherever it is opened.

const UTC = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(?::(\d{2}))?(?:\.0+)?Z$/;

/** A time of an address as it is written: `2026-11-20T10:00Z`, with seconds where there are some; empty when it is none. */
export function readUtc(text: string): string {
  if (!UTC.test(text)) return '';
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? '' : utcText(date.getTime());
}

/** To the second. */
export function utcText(timeMs: number): string {
  const text = new Date(timeMs).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length);
  return `${text.endsWith(':00') ? text.slice(0, -3) : text}Z`;
}

/** @param text of an address, not empty */
export function utcMs(text: string): number {
  return new Date(text).getTime();
}

/** What a `datetime-local` field has for it. */
export function fieldOf(text: string): string {
  return text.replace(/Z$/, '');
}

/** What a `datetime-local` field has, taken for UTC. */
export function utcOfField(field: string): string {
  return field === '' ? '' : readUtc(`${field}Z`);
}
