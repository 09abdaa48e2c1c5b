import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { compressText, selectEncoding } from './compression.ts';
import { DeadlineError, withinDeadline } from './timers.ts';

/** `live`: if it fails, the process must be restarted. `ready`: if it fails, the process must get no traffic. */
export type HealthKind = 'live' | 'ready';

export interface HealthReport {
  ok: boolean;
  /** Present only if `ok` is true and a check that is not required fails. */
  status?: 'degraded';
  /** Results by name of the check. `error` is a word or a code for operators; the log has the error itself. */
  checks: Record<string, CheckReport>;
}

interface CheckReport {
  ok: boolean;
  error?: string;
  /** Explains the problem and what to do, if a word is not enough. */
  message?: string;
  /** Present if the check does not affect the report's result. */
  required?: false;
}

export interface Health {
  /**
   * Registers a check, which passes if it returns or resolves, and fails if it throws, rejects or exceeds `timeoutMs`.
   * @param options `required: false` reports a failure without failing the probe, for dependencies that the process can
   * do without
   */
  register(
    name: string,
    kind: HealthKind,
    check: () => Promise<void> | void,
    options?: { required: boolean },
  ): void;
  report(kind: HealthKind): Promise<HealthReport>;
}

export interface HealthOptions {
  /** While `stopping` is true, `ready` fails. */
  lifecycle?: { readonly stopping: boolean };
  /** Logs a check when it begins to fail and when it passes again. */
  logger?: Pick<Logger, 'info' | 'warn'>;
  /** Time limit of each check; default 2,000. */
  timeoutMs?: number;
}

interface Check {
  name: string;
  kind: HealthKind;
  run: () => Promise<void> | void;
  required: boolean;
  /** The pending run: the next report joins a check that hangs instead of starting it a second time. */
  running: Promise<void> | null;
  failing: boolean;
}

/** Creates the health checks of a process, which run concurrently for each report. */
export function createHealth({ lifecycle, logger, timeoutMs = 2_000 }: HealthOptions = {}): Health {
  const checks: Check[] = [];

  async function runCheck(check: Check): Promise<CheckReport> {
    const requirement = check.required ? {} : ({ required: false } as const);
    try {
      await withinDeadline(timeoutMs, () => joinRunning(check));
      if (check.failing) logger?.info({ check: check.name }, 'health check recovered');
      check.failing = false;
      return { ok: true, ...requirement };
    } catch (err) {
      if (!check.failing) logger?.warn({ err, check: check.name }, 'health check failed');
      check.failing = true;
      return { ok: false, error: errorCode(err), ...publicMessage(err), ...requirement };
    }
  }

  return {
    register(name, kind, check, { required } = { required: true }) {
      checks.push({ name, kind, run: check, required, running: null, failing: false });
    },

    async report(kind) {
      const selected = checks.filter((check) => check.kind === kind);
      const outcomes = await Promise.all(selected.map(runCheck));
      const report: HealthReport = { ok: true, checks: {} };
      for (const [index, check] of selected.entries())
        report.checks[check.name] = outcomes[index] ?? { ok: false };
      // Checked last, because the process may begin to stop while the other checks run.
      if (kind === 'ready' && lifecycle?.stopping) report.checks.lifecycle = { ok: false, error: 'stopping' };
      const reports = Object.values(report.checks);
      report.ok = reports.every(({ ok, required = true }) => ok || !required);
      if (report.ok && reports.some(({ ok }) => !ok)) report.status = 'degraded';
      return report;
    },
  };
}

function joinRunning(check: Check): Promise<void> {
  check.running ??= (async () => check.run())().finally(() => {
    check.running = null;
  });
  return check.running;
}

/**
 * Returns the error's code only: probes are accessible to anyone who reaches the port, and messages may contain hosts,
 * users and SQL.
 */
function errorCode(error: unknown): string {
  if (error instanceof DeadlineError) return 'timed out';
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'failed';
}

/** Returns the error's `publicMessage`: a sentence for the caller of the probe, without internals. */
function publicMessage(error: unknown): { message?: string } {
  const message = error instanceof Error && 'publicMessage' in error ? error.publicMessage : undefined;
  return typeof message === 'string' ? { message } : {};
}

/** Responds to a probe and resolves with true, or ignores the request and resolves with false. Never rejects. */
export type HttpProbes = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

interface ProbeResponse {
  statusCode: number;
  contentType: string;
  body: string;
}

/**
 * Creates the handler of the probes. GET or HEAD of `/healthz` and `/readyz` returns 200 or 503 with the report as
 * JSON; with a registry, `/metrics` returns it in Prometheus' text format. Other paths are left to the caller, so the
 * handler can be used with node:http and as an Express middleware.
 * @param options omit `registry` on a port that is accessible to others than operators
 */
export function createHttpProbes({ health, registry }: { health: Health; registry?: Registry }): HttpProbes {
  const responders: Record<string, () => Promise<ProbeResponse>> = {
    '/healthz': () => reportResponse(health, 'live'),
    '/readyz': () => reportResponse(health, 'ready'),
    ...(registry && { '/metrics': () => metricsResponse(registry) }),
  };

  return async (request, response) => {
    const [path = ''] = (request.url ?? '').split('?');
    const respond = Object.hasOwn(responders, path) ? responders[path] : undefined;
    if (respond === undefined) return false;
    if (hostHeaderCount(request) > 1) {
      send(request, response, {
        statusCode: 400,
        contentType: 'text/plain',
        body: 'Host must be given once.\n',
      });
      return true;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      send(request, response, { statusCode: 405, contentType: 'text/plain', body: 'Method not allowed.\n' });
      return true;
    }
    const probe = await respond().catch(unavailable);
    if (path === '/metrics') await sendCompressed(request, response, probe);
    else send(request, response, probe);
    return true;
  };
}

/** With several hosts, a proxy that restricts the probes could read another one than this process. */
function hostHeaderCount({ rawHeaders }: IncomingMessage): number {
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host').length;
}

async function metricsResponse(registry: Registry): Promise<ProbeResponse> {
  return { statusCode: 200, contentType: registry.contentType, body: await registry.metrics() };
}

async function reportResponse(health: Health, kind: HealthKind): Promise<ProbeResponse> {
  const report = await health.report(kind);
  return { statusCode: report.ok ? 200 : 503, contentType: 'application/json', body: JSON.stringify(report) };
}

/** Response when the metrics or the report cannot be produced; the error may contain internals. */
function unavailable(): ProbeResponse {
  return { statusCode: 500, contentType: 'text/plain', body: 'Not available.\n' };
}

/** Sends metrics, which Prometheus accepts compressed, to about a tenth. */
async function sendCompressed(
  request: IncomingMessage,
  response: ServerResponse,
  probe: ProbeResponse,
): Promise<void> {
  response.setHeader('vary', 'Accept-Encoding');
  const encoding = selectEncoding(probe.body, request.headers['accept-encoding']);
  if (encoding !== null) response.setHeader('content-encoding', encoding);
  send(request, response, probe, encoding === null ? probe.body : await compressText(probe.body, encoding));
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  probe: ProbeResponse,
  body: string | Buffer = probe.body,
): void {
  response.statusCode = probe.statusCode;
  response.setHeader('content-type', probe.contentType);
  response.setHeader('content-length', Buffer.byteLength(body));
  response.setHeader('cache-control', 'no-store');
  response.setHeader('x-content-type-options', 'nosniff');
  if (probe.statusCode === 405) response.setHeader('allow', 'GET, HEAD');
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Limits how long a slow client can delay the stop of the process. */
const closeGraceMs = 2_000;

export interface ProbeServerOptions {
  /** 0 selects a free port. */
  port: number;
  /** Default: all interfaces, because probes come from other hosts. */
  host?: string;
  probes: HttpProbes;
}

export interface ProbeServer {
  port: number;
  /** Closes idle connections immediately and waits for responses in progress, for up to two seconds. */
  close(): Promise<void>;
}

/** Serves probes on a separate port. Rejects if the port is not available. */
export async function startProbeServer({ port, host, probes }: ProbeServerOptions): Promise<ProbeServer> {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, async (request, response) => {
    if (await probes(request, response)) return;
    response.writeHead(404, { 'content-type': 'text/plain' }).end('Not found.\n');
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      const forceClosing = setTimeout(() => server.closeAllConnections(), closeGraceMs);
      await closed;
      clearTimeout(forceClosing);
    },
  };
}
