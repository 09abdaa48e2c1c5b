import type { LookupAddress } from 'node:dns';
import { createServer } from 'node:http';
import { isIPv6 } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Address4, Address6 } from 'ip-address';
import { createEgress, type Egress } from '../src/egress.ts';
import { createAddressGuard } from '../src/index.ts';
import { allowedAddresses, forbiddenAddresses, forbiddenHosts, spellingsOf } from './forbidden-targets.ts';
import { type Listening, listen, NO_DEADLINE_MS } from './listening.ts';

const guard = createAddressGuard({ allowCidrs: [] });
const hostOf = (address: string) => (isIPv6(address) ? `[${address}]` : address);

test('the tables of targets have at least 200 forbidden hosts and 40 allowed addresses, without duplicates', () => {
  expect(forbiddenHosts.length).toBeGreaterThanOrEqual(200);
  expect(allowedAddresses.length).toBeGreaterThanOrEqual(40);
  for (const table of [forbiddenHosts, forbiddenAddresses, allowedAddresses]) {
    expect(new Set(table).size).toBe(table.length);
  }
});

describe('the targets of the tables', () => {
  let server: Listening;
  let egress: Egress;
  let lookupResult: LookupAddress[] = [];
  beforeAll(async () => {
    server = await listen(createServer((_request, response) => void response.end('reached')));
    egress = createEgress({
      allowCidrs: [],
      timeoutMs: NO_DEADLINE_MS,
      blockedStepMs: 0,
      lookup: (_hostname, _options, callback) => callback(null, lookupResult),
    });
  });
  afterAll(async () => {
    egress.close();
    await server.close();
  });
  const codeOf = async (host: string, scheme: string) => {
    const { response, error } = await egress.post({
      accountId: 1,
      url: `${scheme}://${host}:${server.port}/`,
      headers: {},
      body: '{}',
    });
    return response === null ? error?.code : response.statusCode;
  };

  test('forbidden hosts are rejected at creation and at delivery, in every spelling', async () => {
    for (const host of forbiddenHosts) {
      for (const scheme of ['http', 'https']) {
        expect([host, guard.urlProblem(`${scheme}://${host}/`)]).toEqual([host, expect.any(String)]);
        // Delivery is tested even if creation accepted the URL: here the name resolves to a loopback address.
        lookupResult = [{ address: '127.0.0.1', family: 4 }];
        expect([host, await codeOf(host, scheme)]).toEqual([
          host,
          expect.stringMatching(/^(?:address_forbidden|invalid_url)$/),
        ]);
      }
    }
    expect(server.connections).toBe(0);
  });

  test('forbidden addresses are rejected at delivery when a name resolves to them', async () => {
    for (const address of forbiddenAddresses) {
      lookupResult = [{ address, family: isIPv6(address) ? 6 : 4 }];
      expect([address, await codeOf('name.example', 'http')]).toEqual([address, 'address_forbidden']);
    }
    expect(server.connections).toBe(0);
  });

  test('public addresses are allowed', () => {
    for (const address of allowedAddresses) {
      expect([address, guard.allows(address)]).toEqual([address, true]);
      expect([address, guard.urlProblem(`https://${hostOf(address)}/`)]).toEqual([address, null]);
    }
  });
});

// The following tests compare the guard with another implementation of IANA's registries.

const RUNS = { numRuns: 3_000 };

const ipv4Of = (number: number) =>
  [24, 16, 8, 0].map((bits) => Math.floor(number / 2 ** bits) % 256).join('.');
const ipv6Of = (number: bigint) => {
  const digits = number.toString(16).padStart(32, '0');
  return (digits.match(/.{4}/g) ?? []).join(':');
};

/** Random addresses, and those next to the bounds of forbidden ranges. */
const ipv4Bounds = forbiddenAddresses
  .filter((address) => !isIPv6(address))
  .map((address) => Number(new Address4(address).bigInt()));
const anyIpv4 = fc
  .oneof(
    fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    fc
      .tuple(fc.constantFrom(...ipv4Bounds), fc.integer({ min: -300, max: 300 }))
      .map(([bound, offset]) => (((bound + offset) % 2 ** 32) + 2 ** 32) % 2 ** 32),
  )
  .map(ipv4Of);

const ipv6Bounds = forbiddenAddresses.filter(isIPv6).map((address) => new Address6(address).bigInt());
const IPV6_COUNT = 1n << 128n;
const anyIpv6 = fc
  .oneof(
    fc.bigInt({ min: 0n, max: IPV6_COUNT - 1n }),
    // Only an eighth of the address space is routed.
    fc.bigInt({ min: 0n, max: (1n << 125n) - 1n }).map((rest) => (1n << 125n) + rest),
    fc
      .tuple(
        fc.constantFrom(...ipv6Bounds),
        fc.bigInt({ min: -3n, max: 3n }),
        fc.constantFrom(0n, 80n, 96n, 104n, 112n),
      )
      .map(([bound, offset, bits]) => (bound + (offset << bits) + IPV6_COUNT) % IPV6_COUNT),
  )
  .map(ipv6Of);

/** Ranges that are public in the registries but forbidden here. */
const neighboursOfForbidden4 = [
  '168.63.129.16/32',
  '192.0.0.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.175.48.0/24',
  '224.0.0.0/4',
].map((range) => new Address4(range));
const neighboursOfForbidden6 = ['2001::/23', '2002::/16', '2620:4f:8000::/48', '3ffe::/16', '3fff::/20'].map(
  (range) => new Address6(range),
);
const routed6 = new Address6('2000::/3');

function isPublicByReference(text: string): boolean {
  if (!isIPv6(text)) {
    const address = new Address4(text);
    return address.isGlobal() && !neighboursOfForbidden4.some((range) => address.isInSubnet(range));
  }
  const address = new Address6(text);
  return (
    address.isInSubnet(routed6) &&
    address.isGlobal() &&
    !neighboursOfForbidden6.some((range) => address.isInSubnet(range))
  );
}

function isInRangeByReference(text: string, cidr: string): boolean {
  if (isIPv6(text) !== cidr.includes(':')) return false;
  return isIPv6(text)
    ? new Address6(text).isInSubnet(new Address6(cidr))
    : new Address4(text).isInSubnet(new Address4(cidr));
}

test.each([
  ['IPv4', anyIpv4],
  ['IPv6', anyIpv6],
])('an %s address is allowed exactly if a check by the package ip-address allows it', (_family, any) => {
  let allowed = 0;
  fc.assert(
    fc.property(any, (address) => {
      const allows = guard.allows(address);
      if (allows) allowed += 1;
      expect([address, allows]).toEqual([address, isPublicByReference(address)]);
      expect(guard.urlProblem(`http://${hostOf(address)}/`) === null).toBe(allows);
    }),
    RUNS,
  );
  // The sample must contain both allowed and forbidden addresses.
  expect(allowed).toBeGreaterThan(RUNS.numRuns / 20);
  expect(allowed).toBeLessThan((RUNS.numRuns * 19) / 20);
});

test('any spelling of an IPv4 address is checked as that address', () => {
  fc.assert(
    fc.property(anyIpv4, fc.nat({ max: spellingsOf('1.2.3.4').length - 1 }), (address, which) => {
      const spelled = spellingsOf(address)[which];
      const problem = guard.urlProblem(`http://${spelled}/`);
      // The URL parser may reject a spelling, which is a problem as well; the guard checks those that it accepts.
      if (!guard.allows(address)) expect([spelled, problem]).toEqual([spelled, expect.any(String)]);
      else if (URL.canParse(`http://${spelled}/`)) expect([spelled, problem]).toEqual([spelled, null]);
    }),
    RUNS,
  );
});

const anyRange = fc.oneof(
  fc.tuple(anyIpv4, fc.integer({ min: 0, max: 32 })).map(([address, bits]) => `${address}/${bits}`),
  fc.tuple(anyIpv6, fc.integer({ min: 0, max: 128 })).map(([address, bits]) => `${address}/${bits}`),
);

test('allowed and denied ranges are applied as sets, whatever the ranges are', () => {
  fc.assert(
    fc.property(
      fc.array(anyRange, { maxLength: 3 }),
      fc.array(anyRange, { maxLength: 3 }),
      fc.oneof(anyIpv4, anyIpv6),
      (allowCidrs, denyCidrs, address) => {
        const isIn = (ranges: string[]) => ranges.some((range) => isInRangeByReference(address, range));
        const expected = !isIn(denyCidrs) && (isIn(allowCidrs) || isPublicByReference(address));
        const allows = createAddressGuard({ allowCidrs, denyCidrs }).allows(address);
        // A closed IPv4 range includes the forms that embed it; otherwise the result depends only on the sets.
        const isEmbedding = isIPv6(address) && !new Address6(address).isInSubnet(routed6);
        if (isEmbedding || address.startsWith('2002:')) expect(allows && !expected).toBe(false);
        else
          expect([address, allowCidrs, denyCidrs, allows]).toEqual([
            address,
            allowCidrs,
            denyCidrs,
            expected,
          ]);
      },
    ),
    RUNS,
  );
});

const embeddings = [
  (hex: string) => `::${hex}`,
  (hex: string) => `::ffff:${hex}`,
  (hex: string) => `::ffff:0:${hex}`,
  (hex: string) => `64:ff9b::${hex}`,
  (hex: string) => `64:ff9b:1::${hex}`,
  (hex: string) => `2002:${hex}::1`,
];

test('a denied IPv4 range denies every IPv6 form of its addresses, even if all forms are allowed', () => {
  const hexOf = (address: string) => new Address4(address).toGroup6();
  fc.assert(
    fc.property(
      anyIpv4,
      fc.constantFrom(...embeddings),
      fc.integer({ min: 1, max: 32 }),
      (address, form, bits) => {
        const embedded = form(hexOf(address));
        const open = { allowCidrs: ['::/0'] };
        expect(createAddressGuard(open).allows(embedded)).toBe(true);
        const closing = createAddressGuard({ ...open, denyCidrs: [`${address}/${bits}`] });
        expect([embedded, closing.allows(embedded)]).toEqual([embedded, false]);
        // The default guard rejects all of them, whatever address they embed.
        expect(guard.allows(embedded)).toBe(false);
      },
    ),
    RUNS,
  );
});
