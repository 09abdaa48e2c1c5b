import { describe, expect, test } from '@jest/globals';
import { isSameOrigin } from '../../src/http/authentication.ts';

const HOST = 'hooks.example.com';

describe('isSameOrigin', () => {
  test.each([
    ['same-origin', undefined, true],
    ['same-origin', 'https://evil.example.com', true],
    ['same-site', `https://${HOST}`, false],
    ['cross-site', `https://${HOST}`, false],
    ['none', undefined, false],
    ['', `https://${HOST}`, false],
  ])('trusts Sec-Fetch-Site whatever the Origin: %j, %j: %s', (secFetchSite, origin, expected) => {
    expect(isSameOrigin({ secFetchSite, origin, host: HOST })).toBe(expected);
  });

  test.each([
    [`https://${HOST}`, HOST, true],
    [`http://${HOST}`, HOST, true],
    [`https://${HOST}`, `${HOST}:443`, true],
    [`https://${HOST}`, HOST.toUpperCase(), true],
    ['http://localhost:3000', 'localhost:3000', true],
    ['http://[::1]:3000', '[::1]:3000', true],
    ['http://localhost:3001', 'localhost:3000', false],
    [`https://${HOST}:8443`, HOST, false],
    [`https://evil.${HOST}`, HOST, false],
    [`https://${HOST}.evil.example.com`, HOST, false],
    ['null', HOST, false],
    ['', HOST, false],
    [undefined, HOST, false],
    [`https://${HOST}`, undefined, false],
    [`https://${HOST}`, '', false],
    [`https://${HOST}`, 'a b', false],
  ])('compares Origin and Host without Sec-Fetch-Site: %j on %j: %s', (origin, host, expected) => {
    expect(isSameOrigin({ secFetchSite: undefined, origin, host })).toBe(expected);
  });
});
