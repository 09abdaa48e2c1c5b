const OURS = ['DATABASE_URL', 'QUEUE_URL', 'ENCRYPTION_KEYS'];

/** What the environment has for a process that is an outsider: everything but the service's own secrets. */
export function outsidersEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OURS.includes(name)));
}
