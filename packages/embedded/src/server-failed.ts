/**
 * - `no-binaries`: there are no PostgreSQL binaries for this platform, or no redis-server on the path
 * - `no-account`: root found no unprivileged account that PostgreSQL could run as
 * - `no-place`: no folder that the account can use
 * - `in-use`: the folder belongs to a server whose own process is still alive
 * - `not-started`: the server ended, or was not ready in time
 */
export type ServerFailedCode = 'no-binaries' | 'no-account' | 'no-place' | 'in-use' | 'not-started';

/** A server could not be started. The message is for an operator and ends with the server's last log lines. */
export class ServerFailed extends Error {
  readonly code: ServerFailedCode;

  constructor(code: ServerFailedCode, message: string, logLines: readonly string[] = []) {
    super(logLines.length === 0 ? message : `${message}\n${logLines.map((line) => `  ${line}`).join('\n')}`);
    this.name = 'ServerFailed';
    this.code = code;
  }
}
