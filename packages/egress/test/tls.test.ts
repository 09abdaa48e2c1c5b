import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createEgress, type Egress, type EgressOptions } from '../src/egress.ts';
import { clientCertificateOf, parseCertificate, parseClientKey } from '../src/index.ts';
import { type Listening, listen, NO_DEADLINE_MS, rawServer } from './listening.ts';

interface Identity {
  key: string;
  cert: string;
}

function hasOpenssl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    process.stderr.write('TLS tests are skipped: there is no openssl to make certificates with.\n');
    return false;
  }
}

const folder = mkdtempSync(join(tmpdir(), 'egress-tls-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function selfSigned(name: string, subjectAltName: string): Identity {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.crt`)];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${subjectAltName}`];
  const files = ['-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, ...files], { stdio: 'ignore' });
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}

/** Creates a certificate that was valid for one day of 2020; `openssl req` cannot create expired ones. */
function expired(name: string): Identity {
  const file = (end: string) => join(folder, `${name}.${end}`);
  writeFileSync(file('index'), '');
  writeFileSync(
    file('conf'),
    [
      '[ca]\ndefault_ca = own\n[own]',
      `new_certs_dir = ${folder}\ndatabase = ${file('index')}\nserial = ${file('serial')}\nrand_serial = yes\ndefault_md = sha256\npolicy = any\nx509_extensions = names`,
      '[any]\ncommonName = supplied\n[names]\nsubjectAltName = IP:127.0.0.1',
    ].join('\n'),
  );
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' });
  openssl('req', '-new', ...curve, '-subj', `/CN=${name}`, '-keyout', file('key'), '-out', file('csr'));
  const dates = ['-startdate', '20200301000000Z', '-enddate', '20200302000000Z'];
  const files = ['-keyfile', file('key'), '-in', file('csr'), '-out', file('crt')];
  openssl(
    'ca',
    '-batch',
    '-selfsign',
    '-rand_serial',
    '-notext',
    '-config',
    file('conf'),
    ...dates,
    ...files,
  );
  return { key: readFileSync(file('key'), 'utf8'), cert: readFileSync(file('crt'), 'utf8') };
}

(hasOpenssl() ? describe : describe.skip)('over TLS', () => {
  let loopback: Identity;
  let otherHost: Identity;
  let server: Listening;
  let egress: Egress;

  beforeAll(() => {
    loopback = selfSigned('loopback', 'IP:127.0.0.1,DNS:hooks.test');
    otherHost = selfSigned('other', 'DNS:other.test');
  });
  afterEach(async () => {
    egress.close();
    await server.close();
  });

  async function start(identity: Identity, options: Partial<EgressOptions> = {}): Promise<void> {
    server = await listen(
      createServer({ ...identity, keepAliveTimeout: 0 }, (_request, response) => void response.end('sealed')),
    );
    egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: NO_DEADLINE_MS, ...options });
  }
  const post = (host = '127.0.0.1') =>
    egress.post({
      accountId: 1,
      url: `https://${host}:${server.port}/`,
      headers: {},
      body: Buffer.from('{}'),
    });

  test('a trusted endpoint is reached by address, and its connection is reused', async () => {
    await start(loopback, { certificateAuthorities: [loopback.cert] });
    for (let n = 0; n < 5; n += 1) expect((await post()).response?.body.toString()).toBe('sealed');
    expect(server.connections).toBe(1);
  });

  test('a trusted endpoint is reached by name at the address that was checked', async () => {
    await start(loopback, {
      certificateAuthorities: [loopback.cert],
      lookup: (_hostname, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
    });
    const result = await post('hooks.test');
    expect(result.response?.body.toString()).toBe('sealed');
    expect(result.timings).toMatchObject({ connectMs: expect.any(Number), tlsMs: expect.any(Number) });
    expect((await post('hooks.test')).timings).toMatchObject({ connectMs: null, tlsMs: null });
  });

  test('a request whose reused connection the endpoint closes is repeated on a new one', async () => {
    let requests = 0;
    server = await listen(
      createServer({ ...loopback, keepAliveTimeout: 0 }, (request, response) => {
        requests += 1;
        if (requests === 2) request.socket.destroy();
        else response.end('sealed');
      }),
    );
    egress = createEgress({
      allowCidrs: ['127.0.0.0/8'],
      timeoutMs: NO_DEADLINE_MS,
      certificateAuthorities: [loopback.cert],
    });
    await post();
    expect((await post()).response?.body.toString()).toBe('sealed');
    expect(requests).toBe(3);
  });

  test('a self-signed certificate is not trusted', async () => {
    await start(loopback);
    expect(await post()).toMatchObject({
      response: null,
      error: { code: 'tls_untrusted', message: 'The certificate is not trusted: self-signed certificate.' },
    });
    await server.drained();
  });

  test('a certificate for another host is not trusted', async () => {
    await start(otherHost, { certificateAuthorities: [otherHost.cert] });
    expect((await post()).error).toEqual({
      code: 'tls_untrusted',
      message: 'The certificate is not trusted: it is for another host name.',
    });
  });

  test('an expired certificate is reported with its expiry date', async () => {
    const over = expired('over');
    await start(over, { certificateAuthorities: [over.cert] });
    expect((await post()).error).toEqual({
      code: 'tls_untrusted',
      message: 'The certificate is not trusted: it expired on 2020-03-02.',
    });
  });

  test('an endpoint without TLS fails the handshake', async () => {
    server = await listen(rawServer((socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\n')));
    egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: NO_DEADLINE_MS });
    expect((await post()).error).toEqual({ code: 'tls_failed', message: 'The TLS handshake failed.' });
    await server.drained();
  });

  test('an endpoint that stalls in the handshake is a timeout', async () => {
    server = await listen(rawServer(() => {}));
    egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: 300 });
    const result = await post();
    expect(result.error).toEqual({ code: 'timeout', message: 'Timed out after 0.3 s.' });
    await server.drained();
  });

  test('an endpoint that requests a client certificate gets the configured one, with its key', async () => {
    const client = selfSigned('runhook', 'DNS:runhook.test');
    const options = { requestCert: true, rejectUnauthorized: true, ca: [client.cert], keepAliveTimeout: 0 };
    server = await listen(
      createServer({ ...loopback, ...options }, (request, response) => {
        response.end((request.socket as TLSSocket).getPeerCertificate().subject.CN);
      }),
    );
    const trusting = { allowCidrs: ['127.0.0.0/8'], certificateAuthorities: [loopback.cert] };
    egress = createEgress({ ...trusting, timeoutMs: NO_DEADLINE_MS });
    expect((await post()).response).toBeNull();
    egress.close();
    egress = createEgress({ ...trusting, timeoutMs: NO_DEADLINE_MS, clientCertificate: client });
    expect((await post()).response?.body.toString()).toBe('runhook');
  });

  test('a client certificate and its key are checked as settings', async () => {
    await start(loopback);
    expect(parseCertificate(loopback.cert)).toBe(loopback.cert);
    expect(parseClientKey(loopback.key, loopback.cert)).toBe(loopback.key);
    expect(() => parseClientKey(loopback.key, otherHost.cert)).toThrow('the key is not that of the client');
    expect(() => parseClientKey(loopback.cert, loopback.cert)).toThrow('not an unencrypted private key');
    expect(() => parseCertificate(loopback.key)).toThrow('not a certificate');
    expect(clientCertificateOf({ egressClientCert: 'a', egressClientKey: 'b' })).toEqual({
      cert: 'a',
      key: 'b',
    });
    expect(clientCertificateOf({})).toBeUndefined();
  });

  test('an endpoint that closes the connection during the handshake is reported as connection_reset', async () => {
    server = await listen(rawServer((socket) => void socket.destroy()));
    egress = createEgress({ allowCidrs: ['127.0.0.0/8'], timeoutMs: NO_DEADLINE_MS });
    expect((await post()).error?.code).toBe('connection_reset');
    await server.drained();
  });
});
