import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';

/** A proxy that ends TLS in front of a service, as in a deployment: most clients insist on https. */
export interface TlsProxy {
  /** `https://localhost:port` */
  url: string;
  /** File with the certificate of the authority that signed the proxy's. */
  authority: string;
  /** Sets the service's URL. */
  forwardTo(url: string): void;
  close(): Promise<void>;
}

/** Starts a proxy with a new certificate for localhost. @param folder for the certificate */
export async function startTlsProxy(folder: string): Promise<TlsProxy> {
  const [key, certificate] = [join(folder, 'proxy.key'), join(folder, 'proxy.crt')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  // Python rejects a certificate without these extensions if it is its own authority.
  const extensions = ['subjectAltName=DNS:localhost,IP:127.0.0.1', 'keyUsage=digitalSignature,keyCertSign'];
  const options = extensions.flatMap((extension) => ['-addext', extension]);
  execFileSync(
    'openssl',
    ['req', '-x509', ...curve, '-subj', '/CN=localhost', ...options, '-keyout', key, '-out', certificate],
    { stdio: 'ignore' },
  );
  let target = '';
  const server = createServer(
    { key: readFileSync(key), cert: readFileSync(certificate) },
    (request, response) => {
      const { method, headers, url = '/' } = request;
      const forwarded = httpRequest(target + url, { method, headers }, (received) => {
        response.writeHead(received.statusCode ?? 502, received.rawHeaders);
        pipeline(received, response, () => undefined);
      });
      forwarded.on('error', () => response.destroy());
      response.on('close', () => forwarded.destroy());
      pipeline(request, forwarded, () => undefined);
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://localhost:${port}`,
    authority: certificate,
    forwardTo: (url) => {
      target = url;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
