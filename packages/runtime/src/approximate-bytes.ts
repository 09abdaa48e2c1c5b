const HEADER_BYTES = 64;
const REFERENCE_BYTES = 16;

/**
 * Estimates the memory of a value from above, for the bound of a cache or a buffer: two bytes for each character, 64 for an object, 16
 * for a reference. Values must not contain cycles, and functions count as numbers.
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
