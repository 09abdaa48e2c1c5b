import { expect, test } from '@jest/globals';
import { prettyJson } from '../src/delivery/pretty-json.ts';

test('laid out as JSON is, for every shape', () => {
  const value = {
    a: 1,
    b: [1, [], {}, [{ c: null }]],
    'd:{,[': 'a "quoted", {brace}: [bracket] \\ \n',
    e: { f: { g: true } },
  };
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, '\t')])
    expect(prettyJson(text)).toBe(JSON.stringify(value, null, 2));
});

test('numbers keep their digits', () => {
  expect(prettyJson('{"id":12345678901234567890,"x":1.50}')).toBe(
    '{\n  "id": 12345678901234567890,\n  "x": 1.50\n}',
  );
});

test('what is no JSON is told as such', () => {
  expect(prettyJson('not json')).toBeNull();
  expect(prettyJson('')).toBeNull();
});
