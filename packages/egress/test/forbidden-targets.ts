/**
 * Targets as an attacker would write them: hosts of URLs in every spelling that some URL parser interprets as an
 * address. Each of `forbiddenHosts` must be rejected at creation, at the test and at delivery.
 */

/** First and last address of each forbidden range, one in between where it matters, and addresses of known services. */
const forbiddenIpv4Samples = [
  ['0.0.0.0', '0.1.2.3', '0.255.255.255'],
  ['10.0.0.0', '10.0.0.1', '10.20.30.40', '10.96.0.1', '10.255.255.255'],
  ['100.64.0.0', '100.100.100.200', '100.127.255.255'],
  ['127.0.0.0', '127.0.0.1', '127.0.0.53', '127.1.1.1', '127.255.255.255'],
  ['168.63.129.16'],
  ['169.254.0.0', '169.254.169.254', '169.254.170.2', '169.254.169.253', '169.254.20.10', '169.254.255.255'],
  ['172.16.0.0', '172.17.0.1', '172.31.255.255'],
  ['192.0.0.0', '192.0.0.192', '192.0.0.255', '192.0.2.1'],
  ['192.31.196.1', '192.52.193.1', '192.88.99.1', '192.168.0.1', '192.168.255.255', '192.175.48.1'],
  ['198.18.0.0', '198.19.255.255', '198.51.100.1', '203.0.113.1'],
  ['224.0.0.1', '239.255.255.255', '240.0.0.0', '255.255.255.254', '255.255.255.255'],
].flat();

const forbiddenIpv6Samples = [
  ['::', '::1', '0:0:0:0:0:0:0:1', '::0001', '::2'],
  ['::127.0.0.1', '::7f00:1', '::a00:1', '::8.8.8.8'],
  ['::ffff:127.0.0.1', '::ffff:7f00:1', '::FFFF:10.0.0.1', '::ffff:169.254.169.254', '::ffff:8.8.8.8'],
  ['::ffff:0:127.0.0.1', '::ffff:0:7f00:1'],
  ['64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '64:ff9b:1:ffff::7f00:1'],
  ['100::', '100::1', '100:0:0:1::1'],
  ['2001::', '2001::7f00:1', '2001:0:ffff::1', '2001:2::1', '2001:10::1', '2001:20::1', '2001:1ff:ffff::1'],
  ['2001:db8::', '2001:db8::1', '2001:db8:ffff::1', '3fff::1', '3fff:fff:ffff::1'],
  ['2002::', '2002:7f00:1::', '2002:a00:1::1', '2002:a9fe:a9fe::', '2002:ffff::1'],
  ['2620:4f:8000::1', '3ffe::1', '5f00::1', '1::1', '1fff::1', '4000::1', '8000::1', 'c000::1', 'e000::1'],
  ['fc00::', 'fc00::1', 'fd00::1', 'fd00:ec2::254', 'fd20:ce::254', 'fdff:ffff::1'],
  ['fe80::', 'fe80::1', 'fe80::a9fe:a9fe', 'febf::1', 'fec0::1', 'feff::1', 'ff00::1', 'ff02::1', 'ffff::1'],
].flat();

/** Addresses that are also tested in other spellings. */
const ipv4Spellings = [
  '127.0.0.1',
  '10.0.0.1',
  '169.254.169.254',
  '192.168.0.1',
  '100.100.100.200',
  '0.0.0.0',
];

/** Returns all spellings of an IPv4 address that the WHATWG URL parser or another parser interprets as that address. */
export function spellingsOf(address: string): string[] {
  const parts = address.split('.').map(Number);
  const [a = 0, b = 0, c = 0, d = 0] = parts;
  const asInteger = ((a * 256 + b) * 256 + c) * 256 + d;
  const hex = (n: number) => `0x${n.toString(16)}`;
  const octal = (n: number) => `0${n.toString(8)}`;
  const percent = (text: string) =>
    [...text].map((character) => `%${character.charCodeAt(0).toString(16)}`).join('');
  const shifted = (text: string, by: number) =>
    [...text].map((character) => String.fromCodePoint(character.charCodeAt(0) + by)).join('');
  return [
    `${address}.`,
    String(asInteger),
    hex(asInteger),
    hex(asInteger).toUpperCase().replace('X', 'x'),
    octal(asInteger),
    parts.map(hex).join('.'),
    parts.map(octal).join('.'),
    parts.map((n) => `0${octal(n)}`).join('.'),
    parts.map((n) => `0x${n.toString(16).padStart(8, '0')}`).join('.'),
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${hex(a)}.${b}.${octal(c)}.${d}`,
    percent(address),
    // Full-width digits and dots, and the ideographic dot.
    shifted(address, 0xfee0),
    address.replaceAll('.', '\u3002'),
    address.replaceAll('.', '\uff61'),
  ];
}

const localhostNames = [
  'localhost',
  'localhost.',
  'LOCALHOST',
  'LocalHost',
  'a.localhost',
  'a.b.localhost.',
  '%6cocalhost',
  'ⓛocalhost',
  'ｌｏｃａｌｈｏｓｔ',
  'localhost\u3002',
];

export const forbiddenHosts: readonly string[] = [
  ...forbiddenIpv4Samples,
  ...new Set(ipv4Spellings.flatMap(spellingsOf)),
  ...forbiddenIpv6Samples.map((address) => `[${address}]`),
  ...localhostNames,
];

/** Literal addresses only, as a name may resolve to them. */
export const forbiddenAddresses: readonly string[] = [...forbiddenIpv4Samples, ...forbiddenIpv6Samples];

/** Public addresses, including those next to each forbidden range. */
export const allowedAddresses: readonly string[] = [
  ['1.0.0.0', '1.1.1.1', '8.8.8.8', '9.9.9.9', '9.255.255.255', '11.0.0.0', '52.95.110.1', '93.184.216.34'],
  ['100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0', '168.63.129.15', '168.63.129.17'],
  ['169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '191.255.255.255', '192.0.1.0'],
  ['192.0.3.0', '192.31.195.255', '192.31.197.0', '192.52.192.255', '192.52.194.0', '192.88.98.255'],
  ['192.88.100.0', '192.167.255.255', '192.169.0.0', '192.175.47.255', '192.175.49.0', '198.17.255.255'],
  ['198.20.0.0', '198.51.99.255', '198.51.101.0', '203.0.112.255', '203.0.114.0', '223.255.255.255'],
  [
    '2000::1',
    '2001:200::1',
    '2001:4860:4860::8888',
    '2001:db7::1',
    '2001:db9::1',
    '2003::1',
    '2606:4700::1111',
  ],
  ['2620:4f:7fff::1', '2620:4f:8001::1', '2a00:1450::1', '3ffd::1', '3fff:1000::1'],
].flat();
