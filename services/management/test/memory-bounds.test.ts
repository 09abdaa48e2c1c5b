import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { createId, type JobRunEvent } from '@runhook/contract';
import { exampleEvent } from '@runhook/testing';
import { CountCache } from '../src/deliveries/count-cache.ts';
import { PrincipalCache } from '../src/identity/find-principal.ts';
import { JobCache } from '../src/runs/job-cache.ts';
import { Relay } from '../src/runs/relay.ts';

/*
 * Fills the large caches and the buffer of management with the largest values that the contract allows. Together they
 * must leave memory in a pod of 512 MiB, the limit of management in k8s/.
 */

const MIB = 1_024 * 1_024;
/** Lengths of the longest names and messages of the contract, in characters of two bytes each. */
const NAME_CHARACTERS = 1_024;
const MESSAGE_CHARACTERS = 65_536;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function usedBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Returns a text with separate memory, because a repeated text would share its parts. */
const textOf = (characters: number, number: number) =>
  `${Buffer.alloc(2 * (characters - 8), '\u6f22', 'utf16le').toString('utf16le')}${String(number).padStart(8, '0')}`;

async function growthOf(fill: () => Promise<unknown> | unknown): Promise<number> {
  const bytesBefore = usedBytes();
  const filled = await fill();
  const growth = usedBytes() - bytesBefore;
  // Keeps the filled objects referenced during the measurement.
  expect(filled).toBeDefined();
  return growth;
}

const JOB = {
  id: 1,
  account_id: 1,
  project_id: 1,
  environment_id: 1,
  ...{ name: 'n', project_name: 'p', environment_name: 'e' },
};

function largestEvent(number: number): JobRunEvent {
  const event = exampleEvent('job.run.started', JOB);
  const message = textOf(MESSAGE_CHARACTERS, number);
  const name = textOf(NAME_CHARACTERS, number);
  const names = { jobName: name, environmentName: name, projectName: name };
  const data = { ...event.data, ...names, runStatusMessage: message, runReason: `${message.slice(1)}r` };
  return { ...event, eventId: createId('event'), data } as JobRunEvent;
}

test('the relay retains at most 64 MiB of events while the queue does not respond', async () => {
  const logger = { info: () => {}, warn: () => {}, error: () => {} };
  let leftCount = 0;
  const growth = await growthOf(() => {
    const never = () => new Promise<void>(() => {});
    const relay = new Relay({
      events: { add: never, addEach: never },
      logger,
      quarantine: async () => {},
      onRelayed: (_result, count) => {
        leftCount += count;
      },
    });
    for (let number = 0; number < 600; number += 1)
      relay.add([{ event: largestEvent(number), traceContext: null }]);
    return relay;
  });
  expect(leftCount).toBeGreaterThan(0);
  expect(growth).toBeLessThan(80 * MIB);
});

test('the caches of jobs, callers and counts retain at most 64 MiB', async () => {
  const growth = await growthOf(async () => {
    const jobs = new JobCache();
    const rows = Array.from({ length: 100 }, (_, index) => index);
    for (let page = 0; page < 60; page += 1) {
      const keys = rows.map((index) => ({ accountId: 1, id: page * 100 + index, version: '1' }));
      const pool = {
        query: async () => ({
          rows: keys.map(({ id }) => ({
            version: '1',
            ...{ id: String(id), account_id: '1', project_id: '1', environment_id: '1' },
            ...{ name: textOf(NAME_CHARACTERS, id), project_name: textOf(NAME_CHARACTERS, id) },
            environment_name: textOf(NAME_CHARACTERS, id),
          })),
        }),
      };
      await jobs.find(pool as never, keys);
    }
    const principals = new PrincipalCache(async (credential) => ({
      principal: { kind: 'user', memberships: textOf(NAME_CHARACTERS, Number(credential)) } as never,
      version: '1',
      validMs: null,
    }));
    for (let caller = 0; caller < 15_000; caller += 1) await principals.find(String(caller), true);
    const counts = new CountCache<{ hours: object[] }>();
    for (let log = 0; log < 300; log += 1)
      await counts.count(String(log), async () => ({
        hours: Array.from({ length: 24 * 31 }, (_, hour) => ({ hour, deliveries: log, status: 'failed' })),
      }));
    return [jobs, principals, counts];
  });
  expect(growth).toBeLessThan(80 * MIB);
});
