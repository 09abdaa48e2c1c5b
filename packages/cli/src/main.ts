#!/usr/bin/env node
import { runCli } from './program.ts';

/** What is long begins with it, and ends what it does when Ctrl-C is pressed; else that ends the process, as usual. */
function untilStopped(): AbortSignal {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => stopping.abort());
  return stopping.signal;
}

const { env, stdin, stdout, stderr } = process;
process.exitCode = await runCli(process.argv.slice(2), { env, stdin, stdout, stderr, untilStopped });
