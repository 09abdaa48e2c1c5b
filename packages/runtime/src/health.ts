import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { DeadlineError, withinDeadline } from './timers.ts';

/** `live`: the process must be restarted when it fails. `ready`: it must get no traffic for now. */
export type HealthKind = 'live' | 'ready';

export interface HealthReport {
  ok: boolean;
  /** Present only if `ok` is true and a check that is not required fails. */
  status?: 'degraded';
  /** By name of the check. `error` is a word or a code for an operator; the error itself is in the log. */
  checks: Record<string, CheckReport>;
}

interface CheckReport {
  ok: boolean;
  error?: string;
  /** What is wrong and what to do, where a word is not enough. */
  told?: string;
  /** Only told: red or not, the report does not depend on it. */
  required?: false;
}

export interface Health {
  /**
   * The check passes by returning or resolving, and fails by throwing, rejecting or not ending within `timeoutMs`.
   * @param options `required: false` for what the process can do its work without: it is told, and turns nothing red
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
  /** While it is stopping, `ready` is red. */
  lifecycle?: { readonly stopping: boolean };
  /** Told when a check starts to fail and when it passes again. */
  logger?: Pick<Logger, 'info' | 'warn'>;
  /** For each check; default 2,000. */
  timeoutMs?: number;
}

interface Check {
  name: string;
  kind: HealthKind;
  run: () => Promise<void> | void;
  required: boolean;
  /** The run under way: a check that hangs is joined by the next report, not started again beside itself. */
  underway: Promise<void> | null;
  failing: boolean;
}

/** The checks of a process, run side by side whenever somebody asks. */
export function createHealth({ lifecycle, logger, timeoutMs = 2_000 }: HealthOptions = {}): Health {
  const checks: Check[] = [];

  async function outcomeOf(check: Check): Promise<CheckReport> {
    const told = check.required ? {} : ({ required: false } as const);
    try {
      await withinDeadline(timeoutMs, () => joinRun(check));
      if (check.failing) logger?.info({ check: check.name }, 'health check passes again');
      check.failing = false;
      return { ok: true, ...told };
    } catch (err) {
      if (!check.failing) logger?.warn({ err, check: check.name }, 'health check fails');
      check.failing = true;
      return { ok: false, error: describe(err), ...words(err), ...told };
    }
  }

  return {
    register(name, kind, check, { required } = { required: true }) {
      checks.push({ name, kind, run: check, required, underway: null, failing: false });
    },

    async report(kind) {
      const asked = checks.filter((check) => check.kind === kind);
      const outcomes = await Promise.all(asked.map(outcomeOf));
      const report: HealthReport = { ok: true, checks: {} };
      for (const [index, check] of asked.entries())
        report.checks[check.name] = outcomes[index] ?? { ok: false };
      // Asked after the checks, which take time in which a stop may begin.
      if (kind === 'ready' && lifecycle?.stopping) report.checks.lifecycle = { ok: false, error: 'stopping' };
      const outcomesOf = Object.values(report.checks);
      report.ok = outcomesOf.every(({ ok, required = true }) => ok || !required);
      if (report.ok && outcomesOf.some(({ ok }) => !ok)) report.status = 'degraded';
      return report;
    },
  };
}

function joinRun(check: Check): Promise<void> {
  check.underway ??= (async () => check.run())().finally(() => {
    check.underway = null;
  });
  return check.underway;
}

/** Probes are open to whoever reaches the port: hosts, users and SQL that stand in messages stay in the log. */
function describe(error: unknown): string {
  if (error instanceof DeadlineError) return 'timed out';
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'failed';
}

/** An error may bring a sentence for whoever asks, in `told`: one that holds nothing of its surroundings. */
function words(error: unknown): { told?: string } {
  const told = error instanceof Error && 'told' in error ? error.told : undefined;
  return typeof told === 'string' ? { told } : {};
}

/** Answers a probe and resolves with true, or leaves the request alone and resolves with false. Never rejects. */
export type HttpProbes = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

interface Answer {
  statusCode: number;
  contentType: string;
  body: string;
}

/**
 * GET (or HEAD) `/healthz` and `/readyz` answer 200 or 503 with the report as JSON; with a registry `/metrics` answers it in
 * Prometheus' text format. Other paths are left to the caller, so this fits node:http and an Express middleware alike.
 * @param options without `registry` for a port that is open to others than the operators
 */
export function createHttpProbes({ health, registry }: { health: Health; registry?: Registry }): HttpProbes {
  const answers: Record<string, () => Promise<Answer>> = {
    '/healthz': () => reportAnswer(health, 'live'),
    '/readyz': () => reportAnswer(health, 'ready'),
    ...(registry && { '/metrics': () => metricsAnswer(registry) }),
  };

  return async (request, response) => {
    const [path = ''] = (request.url ?? '').split('?');
    const answer = Object.hasOwn(answers, path) ? answers[path] : undefined;
    if (answer === undefined) return false;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      send(request, response, { statusCode: 405, contentType: 'text/plain', body: 'Method not allowed.\n' });
      return true;
    }
    send(request, response, await answer().catch(unavailable));
    return true;
  };
}

async function metricsAnswer(registry: Registry): Promise<Answer> {
  return { statusCode: 200, contentType: registry.contentType, body: await registry.metrics() };
}

async function reportAnswer(health: Health, kind: HealthKind): Promise<Answer> {
  const report = await health.report(kind);
  return { statusCode: report.ok ? 200 : 503, contentType: 'application/json', body: JSON.stringify(report) };
}

/** A metric's collect function or a check's own fault; what it says may be internal. */
function unavailable(): Answer {
  return { statusCode: 500, contentType: 'text/plain', body: 'Not available.\n' };
}

function send(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  response.statusCode = answer.statusCode;
  response.setHeader('content-type', answer.contentType);
  response.setHeader('content-length', Buffer.byteLength(answer.body));
  response.setHeader('cache-control', 'no-store');
  if (answer.statusCode === 405) response.setHeader('allow', 'GET, HEAD');
  response.end(request.method === 'HEAD' ? undefined : answer.body);
}

/** A client that reads or writes slowly may not hold up the stop of the process. */
const closeGraceMs = 2_000;

export interface ProbeServerOptions {
  /** 0 takes a free one. */
  port: number;
  /** Default: every interface, for whoever probes comes from outside. */
  host?: string;
  probes: HttpProbes;
}

export interface ProbeServer {
  port: number;
  /** Closes idle connections at once and lets answers under way end, for up to two seconds. */
  close(): Promise<void>;
}

/** Serves probes on a port of their own. Rejects when the port cannot be had. */
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
      const cut = setTimeout(() => server.closeAllConnections(), closeGraceMs);
      await closed;
      clearTimeout(cut);
    },
  };
}
