import { expect, test } from '@jest/globals';
import { lineText, parseAnsi, SPANS_PER_LINE_MAX } from '../src/runs/steps/ansi.ts';

const plain = (text: string) => ({ text, color: null, isBold: false });

test('a log has its lines, without an empty one after the last line end', () => {
  expect(parseAnsi('one\n\ntwo\r\n')).toEqual([[plain('one')], [], [plain('two')]]);
  expect(parseAnsi('')).toEqual([]);
});

test('colours and bold text apply until they are reset, also across lines', () => {
  expect(parseAnsi('a \x1b[1;32mOK\x1b[0m b\n\x1b[91mfail\nstill\x1b[39m not')).toEqual([
    [plain('a '), { text: 'OK', color: 'green', isBold: true }, plain(' b')],
    [{ text: 'fail', color: 'red', isBold: false }],
    [{ text: 'still', color: 'red', isBold: false }, plain(' not')],
  ]);
});

test('colours of the palette beyond sixteen, true colours and backgrounds are dropped with their parameters', () => {
  const [line = []] = parseAnsi('\x1b[38;5;4mblue\x1b[38;5;200m1\x1b[38;2;1;31;1m2\x1b[48;5;31;1m3');
  expect(line).toEqual([
    { text: 'blue', color: 'blue', isBold: false },
    plain('1'),
    plain('2'),
    { text: '3', color: null, isBold: true },
  ]);
});

test('other escape sequences and control characters are dropped', () => {
  const hostile = '\x1b[2J\x1b[10;1Ha\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x1b\\\x1b(Bb\x07\x08c\x1b';
  expect(parseAnsi(hostile).map(lineText)).toEqual(['alinkbc']);
});

test('a line that a progress bar has overwritten has its last version', () => {
  expect(parseAnsi('10 %\r50 %\r100 %\ndone').map(lineText)).toEqual(['100 %', 'done']);
});

test('a log of a megabyte of escape sequences is parsed at once', () => {
  expect(parseAnsi('\x1b['.repeat(500_000))).toEqual([]);
  expect(parseAnsi(`\x1b]${'x'.repeat(1_000_000)}`)).toEqual([]);
});

test('a line of carriage returns is trimmed at once, and one of many colours has a limited number of parts', () => {
  expect(parseAnsi(`${'\r'.repeat(999_000)}x`).map(lineText)).toEqual(['x']);
  const [line = []] = parseAnsi('\x1b[31ma\x1b[0mb'.repeat(1_000));
  expect(line).toHaveLength(SPANS_PER_LINE_MAX);
  expect(lineText(line)).toBe('ab'.repeat(1_000));
});
