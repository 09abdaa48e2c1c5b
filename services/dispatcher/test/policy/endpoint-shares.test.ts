import { expect, test } from '@jest/globals';
import { createEndpointShares, type EndpointShares, type Place } from '../../src/policy/endpoint-limits.ts';

function setUp(concurrency = 256) {
  const clock = { nowMs: 0 };
  const shares = createEndpointShares({ concurrency, nowMs: () => clock.nowMs });
  return { clock, shares };
}

function takeAll(shares: EndpointShares, endpoint: string): Place[] {
  const places: Place[] = [];
  for (let place = shares.takeInPlace(endpoint); place; place = shares.takeInPlace(endpoint))
    places.push(place);
  return places;
}
const takeAllQueued = (shares: EndpointShares, endpoint: string): Place[] => {
  const places: Place[] = [];
  for (let place = shares.takeQueued(endpoint); 'end' in place; place = shares.takeQueued(endpoint))
    places.push(place);
  return places;
};
const succeed = (shares: EndpointShares, endpoint: string) => shares.takeInPlace(endpoint)?.end(true);
function fail(shares: EndpointShares, endpoint: string, times: number) {
  for (let time = 0; time < times; time += 1) {
    const place = shares.takeQueued(endpoint);
    if ('end' in place) place.end(false);
  }
}

test('an endpoint that answers has a generous share of its own', () => {
  const { shares } = setUp();
  succeed(shares, 'a');
  const places = takeAll(shares, 'a');
  expect(places).toHaveLength(128);
  expect(shares.takeInPlace('b')).not.toBeNull();
  places[0]?.end(true);
  expect(takeAll(shares, 'a')).toHaveLength(1);
});

test('an endpoint that has not answered yet gets a few places until it does', () => {
  const { shares } = setUp();
  const places = takeAll(shares, 'new');
  expect(places).toHaveLength(16);
  places[0]?.end(true);
  expect(takeAll(shares, 'new')).toHaveLength(128 - 15);
});

test('failures in a row shrink the share to four, then to none in place, and a success restores it', () => {
  const { shares } = setUp();
  succeed(shares, 'a');
  fail(shares, 'a', 3);
  const few = takeAll(shares, 'a');
  expect(few).toHaveLength(4);
  for (const place of few) place.end(false);
  fail(shares, 'a', 3);
  expect(takeAll(shares, 'a')).toHaveLength(0);
  const probes = takeAllQueued(shares, 'a');
  // They fail at once, so they hold nobody up.
  expect(probes).toHaveLength(16);
  for (const place of probes) place.end(true);
  expect(takeAll(shares, 'a')).toHaveLength(128);
});

test('an endpoint that stops answering while others answer loses its share before its requests have timed out', () => {
  const { clock, shares } = setUp();
  succeed(shares, 'a');
  const held = Array.from({ length: 20 }, () => shares.takeInPlace('a'));
  clock.nowMs = 600;
  succeed(shares, 'b');
  expect(shares.takeInPlace('a')).toBeNull();
  held[0]?.end(true);
  expect(shares.takeInPlace('a')).not.toBeNull();
});

test('while nobody answers, because this process hangs or the network does, nobody loses its share', () => {
  const { clock, shares } = setUp();
  succeed(shares, 'a');
  shares.takeInPlace('a');
  clock.nowMs = 5_000;
  expect(takeAll(shares, 'a')).toHaveLength(127);
});

test('a far-away endpoint is not silent while it takes its usual time', () => {
  const { clock, shares } = setUp();
  const first = shares.takeInPlace('far');
  clock.nowMs = 1_000;
  first?.end(true);
  shares.takeInPlace('far');
  clock.nowMs = 2_900;
  succeed(shares, 'near');
  expect(shares.takeInPlace('far')).not.toBeNull();
});

test('a thousand endpoints that never answer hold no more than a quarter of the places, and half of the queued ones', () => {
  const { shares } = setUp(256);
  succeed(shares, 'healthy');
  const endpoints = Array.from({ length: 1_000 }, (_, index) => `dead-${index}`);
  expect(endpoints.flatMap((endpoint) => takeAll(shares, endpoint))).toHaveLength(64);
  expect(endpoints.flatMap((endpoint) => takeAllQueued(shares, endpoint))).toHaveLength(128);
  expect(takeAll(shares, 'healthy')).toHaveLength(128);
});

test('what is put off comes again as places become free, never later than after half a minute', () => {
  const { clock, shares } = setUp();
  for (let timeout = 0; timeout < 8; timeout += 1) {
    const probes = takeAllQueued(shares, 'dead');
    clock.nowMs += 10_000;
    for (const place of probes) place.end(false);
  }
  takeAllQueued(shares, 'dead');
  const waits = Array.from({ length: 100 }, () => {
    const place = shares.takeQueued('dead');
    return 'end' in place ? 0 : place.comeAgainInMs;
  });
  // Four places that are held for ten seconds each.
  expect((waits[2] ?? 0) - (waits[1] ?? 0)).toBeCloseTo(2_500, -2);
  expect(Math.max(...waits)).toBe(30_000);
});

test('what is put off because an endpoint has had its share comes again soon when it answers fast', () => {
  const { clock, shares } = setUp();
  for (let request = 0; request < 10; request += 1) {
    const place = shares.takeInPlace('a');
    clock.nowMs += 5;
    place?.end(true);
  }
  takeAllQueued(shares, 'a');
  const waits = Array.from({ length: 100 }, () => {
    const place = shares.takeQueued('a');
    return 'end' in place ? 0 : place.comeAgainInMs;
  });
  expect(Math.max(...waits)).toBeLessThan(200);
});
