/** Limit of the length of a path. */
export const PATH_CHARACTERS_MAX = 255;

/** Pattern of a path; {@link isArtifactPath} also rejects `.` as a segment and `..` in one. */
export const PATH_PATTERN = '^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$';
const PATH = new RegExp(PATH_PATTERN);

/** Whether a path is one that a file may have: relative, without empty segments, `.` and `..`. */
export function isArtifactPath(path: string): boolean {
  if (path.length > PATH_CHARACTERS_MAX || !PATH.test(path)) return false;
  return !path.split('/').some((segment) => segment === '.' || segment.includes('..'));
}
