/**
 * Where to go after signing in: a path below the console's own root, else its start. What names another host
 * (`//host`, `/\host`, a scheme), hides control characters, or leads back to the sign-in is not followed.
 */
export function ownPath(next: string | null): string {
  if (next === null || !/^\/(?![/\\])[^\\]*$/.test(next)) return '/';
  for (const character of next) if (character < ' ' || character === '\u007f') return '/';
  const HOST = 'http://console.invalid';
  if (!URL.canParse(next, HOST)) return '/';
  const { origin, pathname, search } = new URL(next, HOST);
  if (origin !== HOST || /^\/(\/|sign-(in|out)\b)/.test(pathname)) return '/';
  return pathname + search;
}
