import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import type { Health, HealthKind } from './health.ts';

/** Answers a probe and resolves with true, or leaves the request alone and resolves with false. Never rejects. */
export type HttpProbes = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

interface Answer {
  statusCode: number;
  contentType: string;
  body: string;
}

/**
 * GET (or HEAD) `/healthz` and `/readyz` answer 200 or 503 with the report as JSON; `/metrics` the registry in Prometheus'
 * text format. Other paths are left to the caller, so this fits node:http and an Express middleware alike.
 */
export function createHttpProbes({ health, registry }: { health: Health; registry: Registry }): HttpProbes {
  const answers: Record<string, () => Promise<Answer>> = {
    '/healthz': () => reportAnswer(health, 'live'),
    '/readyz': () => reportAnswer(health, 'ready'),
    '/metrics': async () => ({
      statusCode: 200,
      contentType: registry.contentType,
      body: await registry.metrics(),
    }),
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
