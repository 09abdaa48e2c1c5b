#!/usr/bin/env node
import { runCli } from './program.ts';

/**
 * Long-running commands call this first and stop when the signal is aborted; without it, Ctrl-C ends the process
 * immediately.
 */
function createStopSignal(): AbortSignal {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => stopping.abort());
  return stopping.signal;
}

const { env, stdin, stdout, stderr } = process;
process.exitCode = await runCli(process.argv.slice(2), { env, stdin, stdout, stderr, createStopSignal });
