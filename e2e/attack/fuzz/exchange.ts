import { Agent, request as openRequest } from 'node:http';
import type { FuzzRequest } from './requests.ts';

export interface FuzzResponse {
  status: number;
  body: string;
  headers: Record<string, string | string[] | undefined>;
}

const RESPONSE_TIMEOUT_MS = 60_000;

export function createSender(origin: string, connections: number) {
  const { hostname, port } = new URL(origin);
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return {
    /** Resolves with null if the connection ended without a response, or nothing arrived within a minute. */
    send({ method, path, headers, body }: FuzzRequest): Promise<FuzzResponse | null> {
      return new Promise((resolve) => {
        const length = body === null ? {} : { 'content-length': body.length };
        const options = { hostname, port, agent, method, path, headers: { ...headers, ...length } };
        const outgoing = openRequest(options, (response) => {
          const chunks: Buffer[] = [];
          const { statusCode: status = 0, headers: responseHeaders } = response;
          const end = () =>
            resolve({ status, body: Buffer.concat(chunks).toString('utf8'), headers: responseHeaders });
          response.on('data', (chunk: Buffer) => {
            chunks.push(chunk);
            // A stream does not end, so its beginning is sufficient.
            if (isStream(responseHeaders)) {
              end();
              outgoing.destroy();
            }
          });
          response.on('error', () => resolve(null));
          response.on('end', end);
        });
        outgoing.setTimeout(RESPONSE_TIMEOUT_MS, () => outgoing.destroy());
        outgoing.on('error', () => resolve(null));
        outgoing.end(body ?? undefined);
      });
    },
    close: () => agent.destroy(),
  };
}

/** Returns a violation that applies to any response, or null. */
export function findProblem(request: FuzzRequest, response: FuzzResponse | null): string | null {
  if (response === null) return 'no response';
  const { status, headers, body } = response;
  if (status >= 500) return `status ${status}`;
  if (headers['x-request-id'] === undefined) return 'no x-request-id';
  if (request.method === 'HEAD') return body === '' ? null : 'HEAD has a body';
  if (isStream(headers)) return status === 200 && body.startsWith('retry: ') ? null : 'not a stream';
  return isFile(response) ? fileProblem(headers) : envelopeProblem(status, headers['content-type'], body);
}

/** Whether the response is a file of a run, or a confirmation that the caller's copy is current. */
function isFile({ status, headers }: FuzzResponse): boolean {
  return [200, 206, 304].includes(status) && headers['content-disposition'] !== undefined;
}

/** Files have the origin of the console, so no browser may execute or show them. */
function fileProblem(headers: FuzzResponse['headers']): string | null {
  const isSafe =
    String(headers['content-disposition']).startsWith('attachment') &&
    /^(application\/(json|octet-stream)|text\/plain)(;|$)/.test(String(headers['content-type'])) &&
    headers['x-content-type-options'] === 'nosniff' &&
    String(headers['content-security-policy']).includes('sandbox');
  return isSafe ? null : 'a file that a browser could show';
}

function isStream(headers: FuzzResponse['headers']): boolean {
  return String(headers['content-type']).startsWith('text/event-stream');
}

function envelopeProblem(status: number, contentType: unknown, body: string): string | null {
  if (!/^application\/json(;|$)/.test(String(contentType))) return `content-type ${contentType}`;
  const envelope = parseBody(body);
  if (envelope?.status?.code !== status) return 'status.code differs';
  if (status < 400) return 'data' in envelope ? null : 'no data';
  const { is_success, user_message, developer_message } = envelope.status;
  // The rejection of a cursor of a feed has the one that continues.
  const hasNoData = envelope.data === null || (status === 410 && isObject(envelope.data, 'next_after'));
  const isFailure = hasNoData && is_success === false && typeof developer_message === 'string';
  return isFailure && typeof user_message === 'string' && user_message !== ''
    ? null
    : 'not an error envelope';
}

function isObject(value: unknown, onlyKey: string): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).join() === onlyKey;
}

interface Envelope {
  data?: unknown;
  status?: { code?: number; is_success?: boolean; user_message?: unknown; developer_message?: unknown };
}

function parseBody(text: string): (Envelope & { status: NonNullable<Envelope['status']> }) | null {
  try {
    const value = JSON.parse(text) as Envelope | null;
    return value?.status === undefined ? null : { ...value, status: value.status };
  } catch {
    return null;
  }
}

/** Describes a request with enough detail to send it manually. */
export function describeRequest({ method, path, headers, body, kind }: FuzzRequest): string {
  const { authorization: _, ...others } = headers;
  const sent = body === null ? '' : ` ${JSON.stringify(body.subarray(0, 300).toString('latin1'))}`;
  return `${method} ${path.slice(0, 300)} (${kind}) ${JSON.stringify(others).slice(0, 300)}${sent}`;
}
