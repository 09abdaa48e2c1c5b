import { artifactsOf } from './dbt-artifacts.ts';

const ENGINE_VERSION = '1.10.0';
/** Steps that precede the commands of a job in this API family; clients skip the first three. */
const FIRST_STEPS = ['Clone git repository', 'Create profile from connection', 'Invoke dbt with `dbt deps`'];
const [SUCCESS, ERROR] = [10, 20];

interface Claim {
  run: { id: number; trigger: { cause: string; generate_docs_override: boolean | null } };
  execute_steps: string[];
  lease_token: string;
}

export interface RunnerOptions {
  /** Base URL of the service. */
  url: string;
  token: string;
  accountId: number;
}

export interface RestRunner {
  /** Stops claiming, and waits for the runs in progress. */
  stop(): Promise<void>;
}

/**
 * Starts a runner that executes the triggered runs of an account over REST. A run fails if its cause is `error` or a command
 * is `dbt fail`; it waits for its cancellation if its cause is `wait` or a command is `dbt wait`.
 */
export function startRestRunner(options: RunnerOptions): RestRunner {
  const stopping = new AbortController();
  const executions = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const claims = (async () => {
    while (!stopping.signal.aborted) {
      const claim = await call<Claim | null>(options, 'POST', 'runs/claim/', {
        body: { runner: 'proof', wait: 20 },
        signal: stopping.signal,
      }).catch((error: unknown) => {
        if (!stopping.signal.aborted) throw error;
        return null;
      });
      if (claim === null) continue;
      const execution = execute(options, claim).catch((error: unknown) => {
        // The run was cancelled.
        if (error instanceof CallError && error.status === 409) return;
        process.stderr.write(`run ${claim.run.id} was not executed: ${error}\n`);
        failures.push(error);
      });
      executions.add(execution);
      void execution.finally(() => executions.delete(execution));
    }
  })();
  claims.catch((error: unknown) => process.stderr.write(`the runner ended: ${error}\n`));
  return {
    async stop() {
      stopping.abort();
      await claims;
      await Promise.all(executions);
      if (failures.length > 0) throw new AggregateError(failures, `runs failed to execute: ${failures[0]}`);
    },
  };
}

class CallError extends Error {
  readonly status: number;

  constructor(method: string, path: string, status: number, body: string) {
    super(`${method} ${path}: ${status} ${body}`);
    this.status = status;
  }
}

async function execute(options: RunnerOptions, { run, execute_steps: commands, lease_token: lease }: Claim) {
  const report = (method: string, path: string, body?: unknown) =>
    call<{ status: number }>(options, method, `runs/${run.id}/${path}`, { body, lease });
  await report('POST', 'start/', { engine_version: ENGINE_VERSION, started_at: new Date().toISOString() });
  if (run.trigger.cause === 'wait' || commands.includes('dbt wait')) {
    while ((await heartbeat(options, run.id, lease)).run.status < SUCCESS);
    return;
  }
  const isFailure = run.trigger.cause === 'error' || commands.includes('dbt fail');
  const allCommands = run.trigger.generate_docs_override ? [...commands, 'dbt docs generate'] : commands;
  const invocations = allCommands.map((command) => ({
    command,
    isFailure: isFailure && command === commands.at(-1),
  }));
  const steps = [
    ...FIRST_STEPS.map((name) => ({ name, isFailure: false })),
    ...invocations.map(({ command, isFailure: hasFailed }) => ({
      name: `Invoke dbt with \`${command}\``,
      isFailure: hasFailed,
    })),
  ].map(({ name, isFailure: hasFailed }, index) => ({
    index: index + 1,
    name,
    status: hasFailed ? ERROR : SUCCESS,
    started_at: new Date().toISOString(),
    finished_at: new Date().toISOString(),
    logs: `${name}\nDone.\n`,
    debug_logs: `${name}\nDone, in detail.\n`,
  }));
  for (const [index, invocation] of invocations.entries()) {
    for (const [path, text] of artifactsOf({ runId: run.id, ...invocation }))
      await upload(
        options,
        `runs/${run.id}/artifacts/${path}?step=${FIRST_STEPS.length + index + 1}`,
        text,
        lease,
      );
  }
  await report('POST', 'steps/', { run_steps: steps });
  await report('POST', 'finish/', {
    status: isFailure ? 'errored' : 'success',
    finished_at: new Date().toISOString(),
    ...(isFailure && { status_message: 'A model failed' }),
  });
  await report('POST', 'artifacts/');
}

async function heartbeat(options: RunnerOptions, runId: number, lease: string) {
  return await call<{ run: { status: number } }>(options, 'POST', `runs/${runId}/heartbeat/`, {
    body: { wait: 20 },
    lease,
  });
}

async function upload(options: RunnerOptions, path: string, text: string, lease: string) {
  const response = await fetch(`${accountUrl(options)}/${path}`, {
    method: 'PUT',
    headers: { authorization: `Token ${options.token}`, 'lease-token': lease },
    body: text,
  });
  if (!response.ok) throw new CallError('PUT', path, response.status, await response.text());
  await response.arrayBuffer();
}

async function call<T>(
  options: RunnerOptions,
  method: string,
  path: string,
  { body, lease, signal }: { body?: unknown; lease?: string; signal?: AbortSignal } = {},
): Promise<T> {
  const response = await fetch(`${accountUrl(options)}/${path}`, {
    method,
    headers: {
      authorization: `Token ${options.token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(lease !== undefined && { 'lease-token': lease }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
  const text = await response.text();
  if (!response.ok) throw new CallError(method, path, response.status, text);
  return (JSON.parse(text) as { data: T }).data;
}

function accountUrl({ url, accountId }: RunnerOptions): string {
  return `${url}/api/v2/accounts/${accountId}`;
}
