import { createServer } from 'node:http';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createEgress, type Egress } from '../src/egress.ts';
import { createAddressGuard, parsePorts } from '../src/index.ts';
import { type Listening, listen, NO_DEADLINE_MS } from './listening.ts';

describe('a list of ports', () => {
  test.each([
    ['', []],
    [' , ', []],
    ['443', [{ first: 443, last: 443 }]],
    [
      ' 80,443 , 8000-8999 ',
      [
        { first: 80, last: 80 },
        { first: 443, last: 443 },
        { first: 8_000, last: 8_999 },
      ],
    ],
    ['1-65535', [{ first: 1, last: 65_535 }]],
  ])('is parsed: %j', (text, ports) => {
    expect(parsePorts(text)).toEqual(ports);
  });

  test.each(['0', '65536', '9-8', 'https', '-80', '80-', '80 443', '1e3', '80-90-100'])(
    'is rejected with an error that names the item %j',
    (item) => {
      expect(() => parsePorts(`443,${item}`)).toThrow(`"${item}" is not a port or a range of ports`);
    },
  );
});

describe('a guard with a list of ports', () => {
  const guard = createAddressGuard({ allowCidrs: [], ports: parsePorts('443,8000-8001') });

  test.each([
    'https://example.com/',
    'https://example.com:443/',
    'http://example.com:8000/',
    'http://8.8.8.8:8001/',
  ])('accepts %s', (url) => {
    expect(guard.urlProblem(url)).toBeNull();
  });

  test.each([
    ['http://example.com/', 80],
    ['https://example.com:444/', 444],
    ['http://8.8.8.8:7999/', 7_999],
    ['http://example.com:8002/', 8_002],
    ['http://example.com:0/', 0],
  ])('rejects %s', (url, port) => {
    expect(guard.urlProblem(url)).toBe(`must not use the port ${port}, which is not allowed`);
  });
});

describe('a request', () => {
  let server: Listening;
  let egress: Egress;
  afterEach(async () => {
    egress.close();
    await server.close();
  });

  test('to another port is not sent, and its error does not differ from that of other forbidden targets', async () => {
    server = await listen(createServer((_request, response) => void response.end('reached')));
    const options = { allowCidrs: ['127.0.0.0/8'], timeoutMs: NO_DEADLINE_MS, blockedStepMs: 0 };
    const request = { accountId: 1, url: `http://127.0.0.1:${server.port}/`, headers: {}, body: '{}' };
    egress = createEgress({ ...options, ports: [{ first: 443, last: 443 }] });
    expect((await egress.post(request)).error).toEqual({
      code: 'port_forbidden',
      message: 'The endpoint has no address that may be called.',
      detail: `The port ${server.port} is not allowed.`,
    });
    expect(server.connections).toBe(0);
    egress.close();
    egress = createEgress({ ...options, ports: [{ first: server.port, last: server.port }] });
    expect((await egress.post(request)).response?.statusCode).toBe(200);
  });

  test('to a denied range is not sent even if the range is also allowed', async () => {
    server = await listen(createServer((_request, response) => void response.end('reached')));
    egress = createEgress({
      allowCidrs: ['127.0.0.0/8'],
      denyCidrs: ['127.0.0.1/32'],
      timeoutMs: NO_DEADLINE_MS,
      blockedStepMs: 0,
    });
    const url = `http://127.0.0.1:${server.port}/`;
    expect((await egress.post({ accountId: 1, url, headers: {}, body: '{}' })).error?.code).toBe(
      'address_forbidden',
    );
    expect(server.connections).toBe(0);
  });
});
