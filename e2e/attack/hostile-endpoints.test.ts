import { expect, test } from '@jest/globals';
import { hostileEndpoints } from './hostile-endpoints.ts';

test('no hostile endpoint costs ten times what a plain one costs, but those that get the small share for it', async () => {
  const { table, problems, rows } = await hostileEndpoints.run();
  process.stderr.write(`${table}\n`);
  expect(problems).toEqual([]);
  const outcomes = new Map(rows.map(({ name, outcome }) => [name, outcome]));
  expect(outcomes.get('plain')).toBe('200');
  expect(outcomes.get('silence')).toBe('timeout');
  const costly = new Map(rows.map((row) => [row.name, row.costly]));
  for (const plain of ['plain', 'plain, kept', 'plain 500', 'body of 64 KiB', 'redirect', 'silence'])
    expect([plain, costly.get(plain)]).toEqual([plain, false]);
  for (const name of ['chunks of a byte', 'interim answers, a flood', 'head in crumbs', 'answers to nothing'])
    expect([name, costly.get(name)]).toEqual([name, true]);
  expect(outcomes.size).toBeGreaterThanOrEqual(35);
});
