import { expect, test } from '@jest/globals';
import {
  AddressForbiddenError,
  describeFailure,
  NameNotResolvedError,
  PortForbiddenError,
  publicErrorCode,
} from '../src/failure.ts';

const withCode = (code: unknown) => Object.assign(new Error('internal detail /srv/app/x.js:1'), { code });

test.each([
  ['ECONNREFUSED', 'connection_refused', 'Connection refused.'],
  ['ECONNRESET', 'connection_reset', 'The connection was closed before the response was complete.'],
  ['EPIPE', 'connection_reset', 'The connection was closed before the response was complete.'],
  ['ETIMEDOUT', 'timeout', 'The connection timed out.'],
  ['EHOSTUNREACH', 'unreachable', 'The host cannot be reached.'],
  ['ENETUNREACH', 'unreachable', 'The network cannot be reached.'],
  ['CERT_HAS_EXPIRED', 'tls_untrusted', 'The certificate is not trusted: it has expired.'],
  [
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'tls_untrusted',
    'The certificate is not trusted: self-signed certificate.',
  ],
  [
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'tls_untrusted',
    'The certificate is not trusted: its issuer is unknown.',
  ],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_failed', 'The TLS handshake failed.'],
  ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'tls_failed', 'The TLS handshake failed.'],
  ['ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE', 'tls_failed', 'The TLS handshake failed.'],
  ['EPROTO', 'tls_failed', 'The TLS handshake failed.'],
  ['HPE_INVALID_CONSTANT', 'invalid_response', 'The response was not valid HTTP.'],
  ['HPE_HEADER_OVERFLOW', 'invalid_response', 'The headers of the response are too large.'],
  ['EMFILE', 'request_failed', 'The request failed (EMFILE).'],
  ['toString', 'request_failed', 'The request failed.'],
  [42, 'request_failed', 'The request failed.'],
])('the code %s is reported as %s, with a message that shows nothing internal', (code, expected, message) => {
  expect(describeFailure(withCode(code))).toEqual({ code: expected, message });
});

test('errors of this package are recognized inside of wrapping errors', () => {
  const wrap = (cause: Error) => new Error('outer', { cause: new Error('inner', { cause }) });
  expect(describeFailure(wrap(new AddressForbiddenError('10.0.0.1')))).toEqual({
    code: 'address_forbidden',
    message: 'The endpoint has no address that may be called.',
    detail: 'The address 10.0.0.1 is not allowed.',
  });
  expect(describeFailure(wrap(new NameNotResolvedError('x', { cause: withCode('ECONNREFUSED') }))).code).toBe(
    'dns_failed',
  );
});

test('all targets that were not contacted have the same public message and code', () => {
  const failures = [
    new AddressForbiddenError('10.0.0.1'),
    new AddressForbiddenError('fd00::1'),
    new PortForbiddenError(25),
    new NameNotResolvedError('x', { cause: withCode('ENOTFOUND') }),
    new NameNotResolvedError('x', { cause: withCode('ETIMEOUT') }),
    new NameNotResolvedError('x'),
  ].map(describeFailure);
  expect(new Set(failures.map(({ message }) => message)).size).toBe(1);
  expect(new Set(failures.map(({ code }) => publicErrorCode(code)))).toEqual(new Set(['no_address']));
  expect(publicErrorCode('connection_refused')).toBe('connection_refused');
});

test.each([undefined, null, 'text', {}])(
  'a thrown value that is not an error (%p) is reported as a failed request',
  (thrown) => {
    expect(describeFailure(thrown)).toEqual({ code: 'request_failed', message: 'The request failed.' });
  },
);
