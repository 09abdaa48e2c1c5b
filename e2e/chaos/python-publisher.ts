import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { eventually } from '@runhook/testing';
import type { PoisonedEvents } from './poisoned-events.ts';
import type { Stores } from './servers.ts';
import type { World } from './world.ts';

const PACKAGE = fileURLToPath(new URL('../../packages/python/src', import.meta.url));

const PUBLISH = `
import json, sys
from runhook.queue import EventPublisher
with EventPublisher(sys.argv[1]) as publisher:
    publisher.publish_many(json.load(sys.stdin))
`;

async function runPython(args: readonly string[], input = ''): Promise<{ code: unknown; stderr: string }> {
  const environment = { ...process.env, PYTHONPATH: PACKAGE };
  const child = spawn('python3', args, { env: environment, stdio: ['pipe', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined).end(input);
  const [code] = await once(child, 'close').catch((error: Error) => [error.message]);
  return { code, stderr };
}

/** Reasons for omitting texts from Python, each of which is reported once. */
const reported = new Set<string>();

/** Returns the reason why this machine cannot publish from Python, or null. */
async function pythonSkipReason({ backend }: World<Stores>): Promise<string | null> {
  if (backend !== 'Redis') return 'the package for Python publishes on Redis';
  const { code, stderr } = await runPython(['-c', 'import bullmq, runhook.queue']);
  return code === 0 ? null : `${stderr.trim().split('\n').at(-1) || `python3: ${code}`}`;
}

/** Publishes with the package for Python. Returns how many events were accepted: 0 if it was omitted. */
export async function publishFromPython(world: World<Stores>, events: PoisonedEvents): Promise<number> {
  const reason = await pythonSkipReason(world);
  if (reason !== null) {
    if (!reported.has(reason)) process.stderr.write(`skipped: texts from Python: ${reason}\n`);
    reported.add(reason);
    return 0;
  }
  const published = events.withTexts();
  // JSON.stringify escapes unpaired surrogates, so Python reads them unchanged.
  await eventually(async () => {
    const { code, stderr } = await runPython(
      ['-c', PUBLISH, world.servers.queueUrl],
      JSON.stringify(published),
    );
    if (code !== 0) throw new Error(`publishing from Python ended with ${code}: ${stderr}`);
  });
  return published.length;
}
