export const SESSION_COOKIE = 'runhook_session';

/**
 * The `Set-Cookie` of a console session. Strict, not Lax: only the console's own scripts need it, whose requests come
 * from its own pages; a link from elsewhere opens those pages without it. It ends with the browser, or with the
 * session on the server. A plain http installation gets it without `Secure`, or no browser would send it back.
 * @param secure whether the request came over https
 */
export function sessionCookie(sessionId: string, secure: boolean): string {
  return `${SESSION_COOKIE}=${sessionId}; ${attributes(secure)}`;
}

/** The `Set-Cookie` that makes the browser forget. */
export function endedSessionCookie(secure: boolean): string {
  return `${SESSION_COOKIE}=; Max-Age=0; ${attributes(secure)}`;
}

/** @param header the request's `Cookie` */
export function sessionIdOf(header: string | undefined): string | null {
  for (const pair of (header ?? '').split(';')) {
    const [name, value] = pair.trim().split('=');
    if (name === SESSION_COOKIE && value) return value;
  }
  return null;
}

function attributes(secure: boolean): string {
  return `Path=/; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;
}
