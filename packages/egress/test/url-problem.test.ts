import { describe, expect, test } from '@jest/globals';
import { createEgress } from '../src/egress.ts';
import { createAddressGuard } from '../src/index.ts';

const guard = createAddressGuard({ allowCidrs: [] });
const notAbsolute = 'must be an absolute http or https URL';
const notAllowed = (address: string) => `must not point to the address ${address}, which is not allowed`;

describe('a client_url', () => {
  test.each([
    'https://example.com/hook',
    'HTTP://EXAMPLE.com:8080/a?b=c#d',
    'http://8.8.8.8/',
    'https://[2606:4700::1111]/',
    'https://xn--bcher-kva.example/',
    'https://bücher.example/ä',
    'https://localhost.example.com/',
    'https://notlocalhost/',
    'https://unix.example.com/',
  ])('%s is accepted', (url) => {
    expect(guard.urlProblem(url)).toBeNull();
  });

  test.each([
    '',
    'example.com',
    '/hook',
    '//example.com',
    'ftp://example.com',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'http:example.com',
    'http:/example.com',
    'http:///example.com',
    'http:\\\\example.com',
    'https://',
    'http://?',
    ' http://example.com',
    'http://example.com ',
    'http://exa\nmple.com',
    'http://example.com/\u0000',
    'http://a\\@b/',
    'http://example.com:99999/',
    'http://[::1',
    'http://[fe80::1%25eth0]/',
    'http://1.2.3.4.5/',
    'http://256.1.1.1/',
  ])('%j is not an absolute http or https URL', (url) => {
    expect(guard.urlProblem(url)).toBe(notAbsolute);
  });

  test.each(['http://user:pass@example.com/', 'https://user@example.com/', 'https://:p@example.com/'])(
    '%s is rejected because it contains credentials',
    (url) => {
      expect(guard.urlProblem(url)).toBe('must not carry credentials');
    },
  );

  const label = 'a'.repeat(63);
  test.each([
    ['http://a..b/', 'must not have a host name with an empty part between dots'],
    ['http://.example.com/', 'must not have a host name with an empty part between dots'],
    ['https://example.com../', 'must not have a host name with an empty part between dots'],
    [
      `https://${label}a.example/`,
      'must not have a host name with a part of more than 63 characters between dots',
    ],
    [
      `https://${'ä'.repeat(60)}.example/`,
      'must not have a host name with a part of more than 63 characters between dots',
    ],
    [`https://${`${label}.`.repeat(4)}example/`, 'must not have a host name of more than 253 characters'],
    ['https://example.com:0/', 'must not use the port 0, to which no connection can be made'],
    ['http://1.1.1.1:00/', 'must not use the port 0, to which no connection can be made'],
    [`https://${label}.example.com./`, null],
    ['https://a_b.example/', null],
  ])('%s cannot work, or can: %s', (url, problem) => {
    expect(guard.urlProblem(url)).toBe(problem);
  });

  test.each([
    'http://unix:/run/docker.sock:/containers/json',
    'HTTP://UNIX/',
    'https://unix/',
    'http://unix:8080/',
  ])('%s is rejected because got would take it for a socket', (url) => {
    expect(guard.urlProblem(url)).toBe('must not name a socket');
  });

  test.each([
    ['http://127.0.0.1/', '127.0.0.1'],
    ['http://127.0.0.1./', '127.0.0.1'],
    ['http://2130706433/', '127.0.0.1'],
    ['http://0x7f000001/', '127.0.0.1'],
    ['http://0x7f.0.0.1/', '127.0.0.1'],
    ['http://0177.0.0.1/', '127.0.0.1'],
    ['http://127.1/', '127.0.0.1'],
    ['http://0/', '0.0.0.0'],
    ['http://%31%32%37.0.0.1/', '127.0.0.1'],
    ['http://①②⑦.⓪.⓪.①/', '127.0.0.1'],
    ['http://10.0.0.1:8080/x', '10.0.0.1'],
    ['http://169.254.169.254/latest/meta-data/', '169.254.169.254'],
    ['http://[::1]/', '::1'],
    ['http://[::]/', '::'],
    ['http://[0:0:0:0:0:0:0:1]/', '::1'],
    ['http://[::ffff:127.0.0.1]/', '::ffff:7f00:1'],
    ['http://[64:ff9b::7f00:1]/', '64:ff9b::7f00:1'],
    ['http://[fe80::1]/', 'fe80::1'],
  ])('%s is rejected because it points to the forbidden address %s', (url, address) => {
    expect(guard.urlProblem(url)).toBe(notAllowed(address));
  });

  test.each([
    'http://localhost/',
    'http://LOCALHOST:3000/',
    'http://localhost./',
    'http://a.localhost/',
    'http://a.b.localhost./',
    'http://%6cocalhost/',
    'http://ⓛocalhost/',
  ])('%s is rejected because it points to localhost', (url) => {
    expect(guard.urlProblem(url)).toBe('must not point to localhost');
  });

  test.each([['127.0.0.0/8'], ['::1/128']])('may contain localhost if %s is allowed', (cidr) => {
    expect(createAddressGuard({ allowCidrs: [cidr] }).urlProblem('http://localhost:3000/')).toBeNull();
  });

  test('may contain an allowed address', () => {
    expect(createAddressGuard({ allowCidrs: ['10.0.0.0/8'] }).urlProblem('http://10.0.0.1/')).toBeNull();
  });
});

test('with requireHttps, http URLs are rejected when they are saved and when a request is sent', async () => {
  const rules = { allowCidrs: ['127.0.0.0/8'], requireHttps: true };
  const guard = createAddressGuard(rules);
  expect(guard.urlProblem('https://example.com/')).toBeNull();
  const problem = 'must use https: this service sends to no other endpoints';
  expect(guard.urlProblem('HTTP://example.com/')).toBe(problem);
  const egress = createEgress({ ...rules, timeoutMs: 600_000 });
  expect(await egress.post({ accountId: 1, url: 'http://127.0.0.1/', headers: {}, body: '' })).toMatchObject({
    response: null,
    error: { code: 'invalid_url', message: `The URL ${problem}.` },
    timings: null,
  });
  egress.close();
});
