import { lookup } from 'node:dns/promises';
import { BlockList, connect, isIPv6 } from 'node:net';
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

/** First and last address of each private range. */
const PRIVATE_RANGES = [
  ['10.0.0.0', '10.255.255.255', '10.0.0.0/8'],
  ['172.16.0.0', '172.31.255.255', '172.16.0.0/12'],
  ['192.168.0.0', '192.168.255.255', '192.168.0.0/16'],
  ['100.64.0.0', '100.127.255.255', '100.64.0.0/10'],
  ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fc00::/7'],
] as const;

/** Warns about ranges that contain more than proxies: any host in them can forge the addresses of clients. */
export function examineProxies(trustedCidrs: readonly string[]): Finding {
  const trusted = new BlockList();
  for (const cidr of trustedCidrs) {
    const [address = '', length] = cidr.split('/');
    trusted.addSubnet(address, Number(length), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  const contains = (address: string) => trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  const tooWide = PRIVATE_RANGES.filter(([first, last]) => contains(first) && contains(last));
  if (tooWide.length === 0)
    return ok('proxies', trustedCidrs.length === 0 ? 'none is trusted' : `trusts ${trustedCidrs.join(', ')}`);
  return warning(
    'proxies',
    `all of ${tooWide.map(([, , range]) => range).join(', ')} is trusted, so any host there can forge client addresses`,
    'List only the addresses of the proxies in front of management in TRUSTED_PROXY_CIDRS.',
  );
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
