import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A child process of the benchmark that handles calls, several at once if needed. */
export interface Program {
  pid: number;
  call<Result>(method: string, argument?: unknown): Promise<Result>;
  stop(): Promise<void>;
}

export type ProgramName = 'receiver' | 'raw' | 'publisher' | 'reporter' | 'express' | 'minimal';

export function startProgram(name: ProgramName, execArgv: string[] = []): Program {
  const child = fork(fileURLToPath(new URL(`./${name}.js`, import.meta.url)), {
    serialization: 'advanced',
    execArgv,
  });
  const exited = once(child, 'exit');
  const calls = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  let lastId = 0;
  child.on('message', (reply: Reply) => {
    const call = calls.get(reply.id);
    calls.delete(reply.id);
    if ('error' in reply) call?.reject(new Error(`${name}: ${reply.error}`));
    else call?.resolve(reply.result as never);
  });
  void exited.then(() => {
    for (const { reject } of calls.values()) reject(new Error(`${name} ended`));
    calls.clear();
  });
  return {
    pid: child.pid as number,
    call: (method, argument) =>
      new Promise((resolve, reject) => {
        lastId += 1;
        calls.set(lastId, { resolve, reject });
        const call: Call = { id: lastId, method, argument };
        child.send(call, (error) => error && reject(error));
      }),
    async stop() {
      if (child.connected) child.disconnect();
      const timer = setTimeout(() => child.kill('SIGKILL'), 3_000);
      await exited;
      clearTimeout(timer);
    },
  };
}

/** Messages between parent and program. */
export interface Call {
  id: number;
  method: string;
  argument: unknown;
}
export type Reply = { id: number; result: unknown } | { id: number; error: string };

/** Handles the parent's calls until the parent disconnects, so that a program never outlives the benchmark. */
export function serve(methods: Record<string, (argument: never) => unknown>): void {
  process.on('disconnect', () => process.exit(0));
  // Ctrl-C reaches the whole process group of the terminal; the parent stops this process in order.
  process.on('SIGINT', () => undefined);
  process.on('message', async ({ id, method, argument }: Call) => {
    const send = (reply: Reply) => process.connected && process.send?.(reply);
    try {
      send({ id, result: await methods[method]?.(argument as never) });
    } catch (error) {
      send({ id, error: (error as Error).stack ?? String(error) });
    }
  });
}
