const LOGGED_BYTES_MAX = 16_384;

/**
 * The part of a response body that the log keeps: up to 16 KiB as UTF-8, with U+FFFD for what is not UTF-8 and for
 * NUL, which PostgreSQL text cannot hold.
 */
export function loggedBody(body: Buffer, cutBefore: boolean): { body: string; truncated: boolean } {
  const kept = body.subarray(0, LOGGED_BYTES_MAX);
  return {
    body: kept.toString('utf8').replaceAll('\0', '\uFFFD'),
    truncated: cutBefore || body.length > LOGGED_BYTES_MAX,
  };
}
