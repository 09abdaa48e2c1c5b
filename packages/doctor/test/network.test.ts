import { expect, test } from '@jest/globals';
import { examineProxies } from '../src/network.ts';

test.each([
  [[], 'ok', 'none is trusted'],
  [['10.64.8.0/24', 'fd00:1::/64'], 'ok', 'trusts 10.64.8.0/24, fd00:1::/64'],
  [['10.0.0.0/8'], 'warning', 'all of 10.0.0.0/8 is trusted, so any host there can forge client addresses'],
  [
    ['0.0.0.0/0'],
    'warning',
    expect.stringContaining('10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10'),
  ],
  [['192.168.0.0/17', '192.168.128.0/17'], 'warning', expect.stringContaining('all of 192.168.0.0/16')],
  [['fc00::/7'], 'warning', expect.stringContaining('all of fc00::/7')],
])('trusted proxies %j give the finding %s', (cidrs, status, message) => {
  expect(examineProxies(cidrs)).toMatchObject({ check: 'proxies', status, message });
});
