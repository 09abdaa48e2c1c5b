import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { queueBackends } from '@runhook/testing';
import { callApi, openSystem, type System } from '../observability/system.ts';
import type { RunningService } from '../services.ts';
import type { Attack } from './attack.ts';

const LIMIT = 3;

/** Frames pages, confuses probes with two hosts, opens reserved paths, and fills an account with jobs and keys. */
export const surfaces: Attack = {
  name: 'surfaces',
  async run() {
    const backend = queueBackends().at(-1);
    if (!backend) throw new Error('there is no queue back end');
    const system = await openSystem(backend);
    try {
      // The account has two jobs already.
      const limits = { JOBS_PER_ACCOUNT: String(LIMIT + 2), IDEMPOTENCY_KEYS_PER_DAY: String(LIMIT) };
      const management = await system.start('management', limits);
      const checks: [name: string, found: string, expected: string][] = [];
      for (const path of ['/docs', '/openapi.json', '/']) {
        const { headers } = await fetch(management.url + path, { headers: { accept: 'text/html' } });
        const isFramed = !headers.get('content-security-policy')?.includes("frame-ancestors 'none'");
        checks.push([`${path} in a frame`, isFramed ? 'permitted' : 'forbidden', 'forbidden']);
      }
      const probe = await fetch(`${management.url}/healthz`);
      checks.push(['/healthz: nosniff', String(probe.headers.get('x-content-type-options')), 'nosniff']);
      for (const path of ['/healthz', '/readyz', '/docs'])
        checks.push([`${path} with two hosts`, await statusWithTwoHosts(management, path), '400']);
      const page = await fetch(`${management.url}/.well-known/security.txt`, {
        headers: { accept: 'text/html' },
      });
      checks.push(['/.well-known/security.txt without a contact', String(page.status), '404']);
      checks.push(['jobs', await lastStatuses(system, management, false), `${LIMIT} x 201, 409`]);
      await system.database.pool.query(`DELETE FROM jobs WHERE name = 'x'`);
      checks.push(['Idempotency-Keys', await lastStatuses(system, management, true), `${LIMIT} x 201, 429`]);
      return {
        table: [
          '| attack | result |',
          '|---|---|',
          ...checks.map(([name, found]) => `| ${name} | ${found} |`),
        ].join('\n'),
        problems: checks.flatMap(([name, found, expected]) =>
          found === expected ? [] : [`${name}: ${found} instead of ${expected}`],
        ),
      };
    } finally {
      await system.close();
    }
  },
};

async function statusWithTwoHosts({ url }: RunningService, path: string): Promise<string> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n`);
  return (await text(socket)).split(' ')[1] ?? '';
}

/** Creates one job more than the limit permits. */
async function lastStatuses(system: System, management: RunningService, isKeyed: boolean): Promise<string> {
  const statuses: number[] = [];
  for (let index = 0; index <= LIMIT; index++) {
    const { status } = await callApi(system, management, {
      method: 'POST',
      path: `/v2/accounts/${system.account.id}/jobs/`,
      body: { name: 'x', project_name: 'x', environment_name: 'x' },
      ...(isKeyed && { headers: { 'idempotency-key': `key ${index}` } }),
    });
    statuses.push(status);
  }
  const created = statuses.filter((status) => status === 201).length;
  return `${created} x 201, ${statuses.filter((status) => status !== 201).join(', ')}`;
}
