import { expect, test } from '@jest/globals';
import { createId } from '@runhook/contract';
import { type FeedCursor, formatCursor, parseCursor, resolveCursor } from '../../src/feed/cursor.ts';

const [FIRST, SECOND, THIRD] = ['1', '2', '3'].map((digit) => digit.repeat(32)) as [string, string, string];
const GENERATIONS = [
  { id: FIRST, firstPosition: 10n },
  { id: SECOND, firstPosition: 500n },
  { id: THIRD, firstPosition: 800n },
];
const SERVER = { generations: GENERATIONS, end: 1_000n, markedPosition: 950n, oldestSeconds: 9_000_000 };
const START = { position: 0n, eventId: '' };
const cursor = (fields: Partial<FeedCursor>): FeedCursor => ({
  generation: THIRD,
  position: 900n,
  eventId: '',
  sinceSeconds: SERVER.oldestSeconds,
  ...fields,
});

test('a cursor is parsed from its text, with and without an event, and nothing else is', () => {
  for (const eventId of ['', createId('event')])
    expect(parseCursor(formatCursor(cursor({ eventId })))).toEqual(cursor({ eventId }));
  for (const text of ['1', `${FIRST}.1`, `${FIRST}.-1.5`, `${FIRST}.1.5.wdl_1`, ` ${FIRST}.1.5`])
    expect(parseCursor(text)).toBeNull();
});

test.each([
  ['of the current generation', cursor({}), { from: { position: 900n, eventId: '' } }],
  [
    'of an earlier generation, at a position that the later one has',
    cursor({ generation: FIRST, position: 500n }),
    { from: { position: 500n, eventId: '' } },
  ],
  [
    'of an earlier generation, at a position that was undone',
    cursor({ generation: FIRST, position: 501n }),
    { gone: expect.stringContaining('restored'), continueAt: { position: 500n, eventId: '' } },
  ],
  [
    'of the previous generation, at a position that was undone',
    cursor({ generation: SECOND, position: 801n }),
    { gone: expect.stringContaining('restored'), continueAt: { position: 800n, eventId: '' } },
  ],
  [
    'of transactions that a copy of the disks does not have',
    cursor({ position: 1_001n }),
    { gone: expect.stringContaining('restored'), continueAt: { position: 950n, eventId: '' } },
  ],
  [
    'of another database',
    cursor({ generation: 'f'.repeat(32) }),
    { gone: expect.stringContaining('not of this feed'), continueAt: START },
  ],
  [
    'since the beginning of the oldest day',
    cursor({ sinceSeconds: SERVER.oldestSeconds }),
    { from: { position: 900n, eventId: '' } },
  ],
  [
    'of a day that the log has lost',
    cursor({ sinceSeconds: SERVER.oldestSeconds - 1 }),
    { gone: expect.stringContaining('expired'), continueAt: START },
  ],
])('a cursor %s', (_name, input, expected) => {
  expect(resolveCursor(input, SERVER)).toEqual(expected);
});
