import { expect, test } from '@jest/globals';
import { candidateNames, parseHosts, parseSearchRules } from '../src/system-names.ts';

test('parseHosts() parses addresses, names and comments line by line', () => {
  const hosts = parseHosts(
    '# x 1.2.3.4\n::1 both one#two\r\n10.0.0.1\t BOTH\n1.2.3 odd\nfe80::1%eth0 zoned\n\n10.0.0.2\n',
  );
  expect([...hosts]).toEqual([
    [
      'both',
      [
        { address: '10.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ],
    ],
    ['one', [{ address: '::1', family: 6 }]],
    ['zoned', [{ address: 'fe80::1%eth0', family: 6 }]],
  ]);
});

test.each([
  ['', [], 1],
  ['search a.test b.test.\n', ['a.test', 'b.test'], 1],
  ['domain a.test\nsearch B.test b.test\n', ['b.test'], 1],
  ['search a.test\ndomain c.test\noptions edns0 ndots:5 ndots:x\n', ['c.test'], 5],
  ['; search a.test\n# options ndots:3\noptions ndots:99', [], 15],
])('parseSearchRules() of %j returns the search domains %j and ndots %d', (text, search, ndots) => {
  expect(parseSearchRules(text)).toEqual({ search, ndots });
});

const cluster = { search: ['ns.svc.c', 'svc.c'], ndots: 5 };
const office = { search: ['corp.example'], ndots: 1 };
const compose = { search: ['corp.example'], ndots: 0 };

test.each([
  ['receiver', cluster, ['receiver.ns.svc.c', 'receiver.svc.c', 'receiver']],
  ['receiver.other', cluster, ['receiver.other', 'receiver.other.ns.svc.c', 'receiver.other.svc.c']],
  ['a.b.c.d.e.f', cluster, ['a.b.c.d.e.f']],
  ['receiver.', cluster, ['receiver']],
  ['intranet', office, ['intranet.corp.example', 'intranet']],
  // A search domain with a wildcard must not respond for an endpoint that no longer exists.
  ['gone.example.com', office, ['gone.example.com']],
  ['receiver', compose, ['receiver', 'receiver.corp.example']],
  ['gone.example.com', compose, ['gone.example.com']],
  ['receiver', { search: [], ndots: 1 }, ['receiver']],
])('the candidates of %s by the rules %j are %j', (name, rules, candidates) => {
  expect(candidateNames(name, rules)).toEqual(candidates);
});
