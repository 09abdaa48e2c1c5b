/**
 * The environment of a server: what it needs, and none of ours. PGDATA, PGPORT, LC_ALL or TZ of the caller's shell
 * would change how the cluster is made, and our secrets are none of its business.
 */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const kept = ['PATH', 'LD_LIBRARY_PATH', 'SystemRoot', 'TEMP', 'TMP'];
  const environment: NodeJS.ProcessEnv = { LC_ALL: 'C', TZ: 'UTC' };
  for (const name of kept) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}
