/** `dev.json`, for scripts: everything they need to talk to what runs. */
export interface DevJson {
  baseUrl: string;
  account: { id: number; identifier: string };
  user: { id: number; email: string; password: string; apiKey: string };
  /** Permission set `account_admin`. */
  serviceToken: string;
  /** Permission set `job_runner`. */
  runnerToken: string;
  jobs: { id: number; name: string }[];
  subscription: { id: string; hmacSecret: string };
  receiverUrl: string;
  /** Has `/healthz`, `/readyz` and `/metrics`, as `baseUrl` has. */
  dispatcherUrl: string;
  databaseUrl: string;
  /** The one in use, Redis or PostgreSQL. */
  queueUrl: string;
  /** Process ids; null for what runs elsewhere or not at all. */
  processes: {
    management: number;
    dispatcher: number;
    receiver: number;
    postgres: number | null;
    redis: number | null;
  };
}
