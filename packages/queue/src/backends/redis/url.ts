/** Address and topology of Redis: one server, the nodes of a cluster, or sentinels. */
export interface RedisTarget {
  kind: 'single' | 'cluster' | 'sentinel';
  nodes: { host: string; port: number }[];
  isTls: boolean;
  username?: string;
  password?: string;
  /** Logical database; a cluster has only 0. */
  database: number;
  /** Name of the master that the sentinels monitor. */
  masterName?: string;
  sentinelUsername?: string;
  sentinelPassword?: string;
  /** 4 or 6: the IP version that names are resolved to. */
  family?: number;
  /** PEM files: certificate authorities that replace the public ones, and the client's certificate with its key. */
  caFile?: string;
  certFile?: string;
  keyFile?: string;
}

const URL_FORM =
  /^(?<scheme>rediss?)(?:\+(?<kind>cluster|sentinel))?:\/\/(?:(?<credentials>[^/?#]*)@)?(?<hosts>[^/?#@]*)(?<path>\/[^?#]*)?(?:\?(?<query>[^#]*))?$/;
const HOST_FORM = /^(?:\[(?<address>[0-9a-fA-F:.]+)\]|(?<name>[^:[\]]+))(?::(?<port>\d{1,5}))?$/;
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26379;
const TEXT_PARAMETERS = ['sentinelUsername', 'sentinelPassword', 'caFile', 'certFile', 'keyFile'] as const;

/**
 * Parses
 *
 *     redis(s)://[user:password@]host[:6379][/database]
 *     redis(s)+cluster://[user:password@]host[:6379],host,…
 *     redis(s)+sentinel://[user:password@]host[:26379],host,…/master[/database]
 *
 * with the parameters `family`, `caFile`, `certFile`, `keyFile`, `sentinelUsername` and `sentinelPassword`.
 * @throws TypeError that describes the problem without any part of the URL
 */
export function parseRedisUrl(url: string): RedisTarget {
  const parts = URL_FORM.exec(url)?.groups;
  if (parts === undefined) throw new TypeError('the queue URL is not a valid Redis URL');
  const kind = (parts.kind ?? 'single') as RedisTarget['kind'];
  const isTls = parts.scheme === 'rediss';
  const nodes = parseNodes(parts.hosts ?? '', kind === 'sentinel' ? SENTINEL_PORT : REDIS_PORT);
  if (kind === 'single' && nodes.length > 1)
    throw new TypeError('a redis:// URL names one server; several are redis+cluster:// or redis+sentinel://');
  return {
    kind,
    nodes,
    isTls,
    ...parseCredentials(parts.credentials),
    ...parsePath(kind, parts.path),
    ...parseParameters(parts.query, isTls),
  };
}

function parseNodes(hosts: string, defaultPort: number): RedisTarget['nodes'] {
  return hosts.split(',').map((text) => {
    const host = HOST_FORM.exec(text)?.groups;
    const port = Number(host?.port ?? defaultPort);
    const name = host?.address ?? host?.name;
    if (name === undefined || port < 1 || port > 65_535)
      throw new TypeError('the queue URL must name its servers as host or host:port, separated by commas');
    return { host: name, port };
  });
}

function parseCredentials(text: string | undefined): Pick<RedisTarget, 'username' | 'password'> {
  if (!text) return {};
  const [, username = '', password = ''] = /^([^:]*):?(.*)$/s.exec(text) ?? [];
  return {
    ...(username !== '' && { username: decodePercent(username) }),
    ...(password !== '' && { password: decodePercent(password) }),
  };
}

function parsePath(kind: RedisTarget['kind'], path = '/'): Pick<RedisTarget, 'database' | 'masterName'> {
  const segments = path.split('/').filter((segment) => segment !== '');
  const masterName = kind === 'sentinel' ? segments.shift() : undefined;
  if (kind === 'sentinel' && masterName === undefined)
    throw new TypeError('a redis+sentinel:// URL names the master that the sentinels watch: …/mymaster');
  const [database = '0', ...more] = segments;
  if (more.length > 0 || !/^\d{1,5}$/.test(database))
    throw new TypeError('the last part of the queue URL must be the number of a database');
  if (kind === 'cluster' && database !== '0') throw new TypeError('a Redis Cluster has only database 0');
  return {
    database: Number(database),
    ...(masterName !== undefined && { masterName: decodePercent(masterName) }),
  };
}

function parseParameters(query: string | undefined, isTls: boolean): Partial<RedisTarget> {
  const parameters: Partial<RedisTarget> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    const textParameter = TEXT_PARAMETERS.find((candidate) => candidate === name);
    if (textParameter !== undefined) parameters[textParameter] = value;
    else if (name === 'family' && /^[46]$/.test(value)) parameters.family = Number(value);
    else throw new TypeError('the queue URL has an unknown parameter');
  }
  if (!isTls && (parameters.caFile ?? parameters.certFile ?? parameters.keyFile) !== undefined)
    throw new TypeError('certificates in the queue URL need rediss://');
  return parameters;
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TypeError('the queue URL is not percent-encoded correctly');
  }
}
