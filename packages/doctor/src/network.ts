import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { createAddressGuard, type EgressRules } from '@runhook/egress';
import { type Finding, failed, ok, reasonOf, skipped, warning } from './finding.ts';

/** Checks whether deliveries may be sent to a URL, and whether this machine can connect to it. Sends nothing. */
export async function examineEgress(
  rules: EgressRules,
  endpoint: string | undefined,
  timeoutMs: number,
): Promise<Finding> {
  if (endpoint === undefined)
    return skipped('egress', 'no endpoint to check', 'Add one with --endpoint <url>.');
  const guard = createAddressGuard(rules);
  const problem = guard.urlProblem(endpoint);
  if (problem !== null)
    return failed(
      'egress',
      `the endpoint ${problem}`,
      'Change the URL, or the EGRESS_… settings: docs/configuration.md.',
    );
  const url = new URL(endpoint);
  const name = url.hostname.replace(/^\[|\]$/g, '');
  const addresses = await lookup(name, { all: true }).catch((error: unknown) => reasonOf(error));
  if (typeof addresses === 'string')
    return failed(
      'egress',
      `${name} cannot be resolved (${addresses})`,
      'Check the host name and the DNS of this machine.',
    );
  const allowed = addresses.map(({ address }) => address).filter((address) => guard.allows(address));
  const [address] = allowed;
  if (address === undefined)
    return failed(
      'egress',
      `all addresses of ${name} are forbidden`,
      'Allow its range with EGRESS_ALLOW_CIDRS if deliveries should reach it.',
    );
  try {
    await dial(url, address, timeoutMs);
    return ok('egress', `${url.host} is allowed and reachable`);
  } catch (error) {
    return failed(
      'egress',
      `${url.host} is allowed but cannot be reached (${reasonOf(error)})`,
      'Check the firewalls, network policies and proxies between this machine and the endpoint, and its certificate.',
    );
  }
}

function dial(url: URL, address: string, timeoutMs: number): Promise<void> {
  const isTls = url.protocol === 'https:';
  const target = { host: address, port: Number(url.port || (isTls ? 443 : 80)) };
  return new Promise((resolve, reject) => {
    const socket = isTls ? connectTls({ ...target, servername: url.hostname }) : connect(target);
    socket.setTimeout(timeoutMs, () =>
      socket.destroy(Object.assign(new Error('too late'), { code: 'ETIMEDOUT' })),
    );
    socket.once('error', reject);
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      socket.destroy();
      resolve();
    });
  });
}

/** Checks the service at the URL of its clients, and the token if there is one. */
export async function* examineService(
  url: string | undefined,
  token: string | undefined,
  timeoutMs: number,
): AsyncGenerator<Finding> {
  if (url === undefined) {
    yield skipped('service', 'no URL of the service to check', 'Set it with --url or RUNHOOK_URL.');
    return;
  }
  const service = await examineReadiness(url, timeoutMs);
  yield service;
  if (token === undefined) {
    yield skipped('token', 'no token to check', 'Set RUNHOOK_TOKEN, or use a token file: docs/cli.md.');
    return;
  }
  yield await examineToken(url, token, timeoutMs);
}

interface Readiness {
  ok: boolean;
  /** `degraded` if `ok` is true and a check that is not required fails. */
  status?: string;
  checks: Record<string, { ok: boolean; error?: string; required?: boolean }>;
}

async function examineReadiness(url: string, timeoutMs: number): Promise<Finding> {
  try {
    const response = await fetch(new URL('readyz', withTrailingSlash(url)), {
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'manual',
    });
    const report = (await response.json().catch(() => null)) as Readiness | null;
    if (typeof report?.checks !== 'object')
      return failed(
        'service',
        `the response (${response.status}) is not from Runhook`,
        'Set the URL of the management service, including its path prefix.',
      );
    const failedChecks = Object.entries(report.checks).filter(([, check]) => !check.ok);
    const names = failedChecks.map(([name, { error = 'failed' }]) => `${name} (${error})`).join(', ');
    if (!report.ok)
      return failed('service', `is not ready: ${names}`, 'See the log of the service, and docs/runbook.md.');
    if (report.status === 'degraded')
      return warning('service', `is degraded: ${names}`, 'See the log of the service, and docs/runbook.md.');
    return ok(
      'service',
      failedChecks.length === 0 ? 'is ready' : `is ready, but these checks fail: ${names}`,
    );
  } catch (error) {
    return failed(
      'service',
      `cannot be reached (${reasonOf(error)})`,
      'Check that it is running and that the URL is correct.',
    );
  }
}

/**
 * Uses fetch instead of the client package, which is generated from management's API, and management uses this package.
 */
async function examineToken(url: string, token: string, timeoutMs: number): Promise<Finding> {
  try {
    const response = await fetch(new URL('api/v3/accounts', withTrailingSlash(url)), {
      headers: { authorization: `Token ${token}` },
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'manual',
    });
    const body = (await response.json().catch(() => null)) as { data?: { id: number }[] } | null;
    if (response.status === 401)
      return failed(
        'token',
        'is rejected: invalid, revoked or expired',
        'Create another one: `npm run admin -- token create`.',
      );
    if (!response.ok || !Array.isArray(body?.data))
      return failed('token', `cannot be checked (${response.status})`, 'See the check of the service.');
    const ids = body.data.map(({ id }) => id);
    if (ids.length > 0) return ok('token', `is valid for account ${ids.join(', ')}`);
    return failed(
      'token',
      'is valid, but has access to no account',
      'Add a membership for its user: docs/administration.md.',
    );
  } catch (error) {
    return failed('token', `cannot be checked (${reasonOf(error)})`, 'See the check of the service.');
  }
}

const withTrailingSlash = (url: string) => (url.endsWith('/') ? url : `${url}/`);
