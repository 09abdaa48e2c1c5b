/**
 * Returns a URL of a queue in PostgreSQL that has no user with the login of the database's URL, so that services with
 * separate roles can share one `QUEUE_URL`. Other URLs are returned unchanged.
 */
export function queueUrlWithLogin(queueUrl: string, databaseUrl: string): string {
  if (!/^postgres/.test(queueUrl)) return queueUrl;
  const url = new URL(queueUrl);
  if (url.username !== '') return queueUrl;
  const { username, password } = new URL(databaseUrl);
  return Object.assign(url, { username, password }).href;
}
