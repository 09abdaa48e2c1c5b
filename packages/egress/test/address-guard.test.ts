import { describe, expect, test } from '@jest/globals';
import { createAddressGuard } from '../src/index.ts';
import { allowedAddresses } from './forbidden-targets.ts';

const guard = createAddressGuard({ allowCidrs: [] });

/** The first and last address of each range, and one in between where it matters. */
const forbiddenAddresses: Record<string, string[]> = {
  'this network': ['0.0.0.0', '0.1.2.3', '0.255.255.255'],
  'private (10/8)': ['10.0.0.0', '10.20.30.40', '10.255.255.255'],
  'carrier-grade NAT': ['100.64.0.0', '100.100.100.200', '100.127.255.255'],
  'IPv4 loopback': ['127.0.0.0', '127.0.0.1', '127.255.255.255'],
  'IPv4 link-local': ['169.254.0.0', '169.254.169.254', '169.254.255.255'],
  'private (172.16/12)': ['172.16.0.0', '172.31.255.255'],
  'IETF assignments': ['192.0.0.0', '192.0.0.192', '192.0.0.255'],
  'documentation, IPv4': ['192.0.2.1', '198.51.100.1', '203.0.113.1'],
  'AS112 and relays': ['192.31.196.1', '192.52.193.1', '192.88.99.1', '192.175.48.1'],
  'private (192.168/16)': ['192.168.0.0', '192.168.255.255'],
  'benchmarking, IPv4': ['198.18.0.0', '198.19.255.255'],
  'multicast, IPv4': ['224.0.0.0', '239.255.255.255'],
  'reserved and broadcast': ['240.0.0.0', '255.255.255.254', '255.255.255.255'],
  'cloud platform address': ['168.63.129.16'],
  'IPv6 unspecified': ['::'],
  'IPv6 loopback': ['::1', '0:0:0:0:0:0:0:1'],
  'IPv4-compatible': ['::127.0.0.1', '::8.8.8.8'],
  'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::ffff:0:8.8.8.8'],
  NAT64: ['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '64:ff9b:1:ffff::1'],
  discard: ['100::', '100::ffff:ffff:ffff:ffff', '100:0:0:1::1'],
  Teredo: ['2001::', '2001:0:ffff::1'],
  'benchmarking, ORCHID and other assignments': ['2001:2::1', '2001:10::1', '2001:20::1', '2001:1ff:ffff::1'],
  'documentation, IPv6': ['2001:db8::', '2001:db8:ffff::1', '3fff::1', '3fff:fff:ffff::1'],
  '6to4': ['2002::', '2002:7f00:1::1', '2002:ffff::1'],
  '6bone': ['3ffe::1'],
  'AS112, IPv6': ['2620:4f:8000::1'],
  'segment routing': ['5f00::1'],
  'unassigned IPv6': ['1::1', '1fff::1', '4000::1', '8000::1', 'c000::1', 'e000::1'],
  'unique local': ['fc00::', 'fd00:ec2::254', 'fdff:ffff::1'],
  'IPv6 link-local': ['fe80::', 'fe80::1', 'febf::1', 'fe80::1%eth0'],
  'site-local': ['fec0::1', 'feff::1'],
  'multicast, IPv6': ['ff00::1', 'ff02::1', 'ffff::1'],
  'a zone on a public address': ['2606:4700::1%eth0'],
  'not an address in the form that sockets accept': [
    '',
    'localhost',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '8.8.8.8 ',
  ],
};

describe('an address', () => {
  for (const [range, addresses] of Object.entries(forbiddenAddresses)) {
    test.each(addresses)(`%s is rejected: ${range}`, (address) => {
      expect(guard.allows(address)).toBe(false);
    });
  }

  test.each(allowedAddresses)('%s is allowed', (address) => {
    expect(guard.allows(address)).toBe(true);
  });
});

describe('an allowed range', () => {
  test('allows its addresses and no others', () => {
    const opened = createAddressGuard({ allowCidrs: ['10.1.0.0/16', 'fd00::/64'] });
    expect(opened.allows('10.1.255.255')).toBe(true);
    expect(opened.allows('10.2.0.0')).toBe(false);
    expect(opened.allows('fd00::1')).toBe(true);
    expect(opened.allows('fd00:0:0:1::1')).toBe(false);
  });

  test('of IPv4 allows no IPv6 form that embeds its addresses', () => {
    const opened = createAddressGuard({ allowCidrs: ['127.0.0.0/8', '0.0.0.0/0'] });
    expect(opened.allows('127.0.0.1')).toBe(true);
    for (const address of ['::ffff:127.0.0.1', '::127.0.0.1', '64:ff9b::127.0.0.1', '2002:7f00:1::', '::1']) {
      expect(opened.allows(address)).toBe(false);
    }
  });

  test('of an embedding form allows only that form', () => {
    const opened = createAddressGuard({ allowCidrs: ['64:ff9b::/96'] });
    expect(opened.allows('64:ff9b::8.8.8.8')).toBe(true);
    expect(opened.allows('64:ff9b:1::1')).toBe(false);
    expect(opened.allows('10.0.0.1')).toBe(false);
  });

  test('is named in the error if it cannot be parsed', () => {
    expect(() => createAddressGuard({ allowCidrs: ['10.0.0.0/8', '10.0.0.0/33'] })).toThrow('"10.0.0.0/33"');
  });
});
