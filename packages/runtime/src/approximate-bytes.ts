const HEADER_BYTES = 64;
const REFERENCE_BYTES = 16;

/**
 * Returns an upper estimate of a value's memory, for the limit of a cache or a buffer: two bytes per character, 64 per
 * object, 16 per reference. Values must not contain cycles, and functions count as numbers.
 */
export function approximateBytes(value: unknown): number {
  if (typeof value === 'string') return REFERENCE_BYTES + 2 * value.length;
  if (typeof value !== 'object' || value === null) return REFERENCE_BYTES;
  if (ArrayBuffer.isView(value)) return HEADER_BYTES + value.byteLength;
  const fields = value instanceof Map || value instanceof Set ? [...value] : Object.values(value);
  return fields.reduce<number>(
    (bytes, field) => bytes + REFERENCE_BYTES + approximateBytes(field),
    HEADER_BYTES,
  );
}
