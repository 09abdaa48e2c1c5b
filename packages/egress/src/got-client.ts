import http from 'node:http';
import https from 'node:https';
import got, { type Got, type RequestFunction } from 'got';
import type { AccountRequestOptions, ConnectionPool } from './connection-pool.ts';
import type { EndpointCache } from './endpoint-url.ts';

const HEADER_BYTES_MAX = 16_384;

interface RequestDependencies {
  agents: ConnectionPool['agents'];
  endpoints: EndpointCache;
}

export interface GotClientOptions {
  agents: ConnectionPool['agents'];
  /** Deadline from the native request to the end of its response. */
  timeoutMs: number;
}

/**
 * Returns got with all options that do not differ between requests. Only its `request` timeout is set: the phases share
 * one deadline (docs/contract.md#attempts), so a limit per phase could only fail a request that is still in time, and
 * the phase timeouts cost 8 us of CPU per request.
 */
export function createGotClient({ agents, timeoutMs }: GotClientOptions): Got {
  return got.extend({
    agent: agents,
    method: 'POST',
    isStream: true,
    headers: { 'user-agent': undefined, 'accept-encoding': 'identity' },
    decompress: false,
    followRedirect: false,
    throwHttpErrors: false,
    retry: { limit: 0 },
    timeout: { request: timeoutMs },
  });
}

/**
 * Returns got's `request` option for requests of an account. got itself would pass some forty options to Node, which
 * copies them twice for each request; these suffice.
 */
export function requestOf(accountId: number, { agents, endpoints }: RequestDependencies): RequestFunction {
  return (url, { headers }) => {
    const isHttps = url.protocol === 'https:';
    const native: AccountRequestOptions = {
      ...endpoints.destinationOf(url),
      accountId,
      method: 'POST',
      headers: headers as http.OutgoingHttpHeaders,
      agent: isHttps ? agents.https : agents.http,
      maxHeaderSize: HEADER_BYTES_MAX,
    };
    return isHttps ? https.request(native) : http.request(native);
  };
}
