import http, { type RequestOptions } from 'node:http';
import https from 'node:https';
import got, { type Got } from 'got';
import type { ConnectionPool } from './connection-pool.ts';
import type { EndpointCache } from './endpoint-url.ts';

const HEADER_BYTES_MAX = 16_384;

export interface GotClientOptions {
  agents: ConnectionPool['agents'];
  endpoints: EndpointCache;
  /** Deadline from the native request to the end of its response. */
  timeoutMs: number;
}

/**
 * Returns got with all options that do not differ between requests. Only its `request` timeout is set: the phases share
 * one deadline (docs/contract.md#attempts), so a limit per phase could only fail a request that is still in time, and
 * the phase timeouts cost 8 us of CPU per request.
 */
export function createGotClient({ agents, endpoints, timeoutMs }: GotClientOptions): Got {
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
    // got would pass some forty options to Node, which copies them twice for each request; these suffice.
    request: (url, { headers }) => {
      const isHttps = url.protocol === 'https:';
      const native: RequestOptions = {
        ...endpoints.destinationOf(url),
        method: 'POST',
        headers: headers as http.OutgoingHttpHeaders,
        agent: isHttps ? agents.https : agents.http,
        maxHeaderSize: HEADER_BYTES_MAX,
      };
      return isHttps ? https.request(native) : http.request(native);
    },
  });
}
