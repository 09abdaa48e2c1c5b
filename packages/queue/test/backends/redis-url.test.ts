import { expect, test } from '@jest/globals';
import { parseRedisUrl, type RedisTarget } from '../../src/backends/redis/url.ts';

const SINGLE_SERVER = { kind: 'single', nodes: [{ host: 'a', port: 6379 }], isTls: false, database: 0 };

const ACCEPTED_URLS: [string, Partial<RedisTarget>][] = [
  ['redis://a', SINGLE_SERVER as Partial<RedisTarget>],
  [
    'redis://a:1/3',
    { ...SINGLE_SERVER, nodes: [{ host: 'a', port: 1 }], database: 3 } as Partial<RedisTarget>,
  ],
  [
    'rediss://u:p%40%2F@a',
    { ...SINGLE_SERVER, isTls: true, username: 'u', password: 'p@/' } as Partial<RedisTarget>,
  ],
  ['redis://:only@a/', { ...SINGLE_SERVER, password: 'only' } as Partial<RedisTarget>],
  ['redis://u:p@ss@a', { ...SINGLE_SERVER, username: 'u', password: 'p@ss' } as Partial<RedisTarget>],
  [
    'redis://[::1]:7?family=6',
    { ...SINGLE_SERVER, nodes: [{ host: '::1', port: 7 }], family: 6 } as Partial<RedisTarget>,
  ],
  [
    'redis+cluster://:p@a,b:2,[::1]',
    {
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 6379 },
        { host: 'b', port: 2 },
        { host: '::1', port: 6379 },
      ],
      isTls: false,
      password: 'p',
      database: 0,
    },
  ],
  [
    'rediss+sentinel://u:p@a,b:2/main/4?sentinelPassword=s&caFile=/ca.pem',
    {
      kind: 'sentinel',
      nodes: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 2 },
      ],
      isTls: true,
      username: 'u',
      password: 'p',
      database: 4,
      masterName: 'main',
      sentinelPassword: 's',
      caFile: '/ca.pem',
    },
  ],
];

test.each(ACCEPTED_URLS)('the URL %s is parsed', (url, target) => {
  expect(parseRedisUrl(url)).toEqual(target);
});

const REJECTED_URLS: [string, RegExp][] = [
  ['redis://', /must name its servers/],
  ['redis://hunter2:99999', /must name its servers/],
  ['redis://hunter2,b', /one server/],
  ['redis://hunter2/x', /number of a database/],
  ['redis+cluster://hunter2/1', /only database 0/],
  ['redis+sentinel://hunter2', /names the master/],
  ['redis+sentinel://hunter2/m/1/2', /number of a database/],
  ['redis://hunter2?maxRetriesPerRequest=1', /unknown parameter/],
  ['redis://hunter2?caFile=/ca.pem', /need rediss/],
  ['redis://:%zz@hunter2', /percent-encoded/],
];

test.each(REJECTED_URLS)('the URL %s is rejected with a message that does not contain it', (url, reason) => {
  let message = '';
  try {
    parseRedisUrl(url);
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message).toMatch(reason);
  expect(message).not.toContain('hunter2');
});
