/** Redis's errors for a forbidden command, and for one within a script or function. */
const FORBIDDEN = /\bNOPERM\b|The user executing the script can't|\bACL failure in script\b/;

/** Whether an error means that the user lacks a permission. */
export function isForbidden(error: unknown): boolean {
  return error instanceof Error && FORBIDDEN.test(error.message);
}
