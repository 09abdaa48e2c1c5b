import { expect, test } from '@jest/globals';
import type { EventType } from '@runhook/contract';
import { EXAMPLE_JOB, exampleEvent } from '@runhook/testing';
import {
  hasSuccessors,
  isOutOfOrder,
  predecessorOf,
  type RunDelivery,
  unrecordedTypes,
} from '../../src/policy/run-order.ts';

const [STARTED, ERRORED, COMPLETED] = ['job.run.started', 'job.run.errored', 'job.run.completed'] as const;

const deliveryOf = (eventType: EventType, runId = 1) => ({
  event: exampleEvent(eventType, EXAMPLE_JOB, runId),
  attemptCount: 0,
});

const recorded = (eventType: EventType, state: Partial<RunDelivery> = {}): RunDelivery => ({
  id: `wdl_${eventType}`,
  eventId: `wev_${eventType}`,
  eventType,
  runId: '1',
  isUnended: true,
  isSent: false,
  ...state,
});

test.each([
  [COMPLETED, [recorded(STARTED), recorded(ERRORED)], STARTED],
  [COMPLETED, [recorded(ERRORED), recorded(STARTED)], STARTED],
  [COMPLETED, [recorded(STARTED, { isUnended: false }), recorded(ERRORED)], ERRORED],
  [COMPLETED, [recorded(STARTED, { runId: '2' })], null],
  [COMPLETED, [recorded(COMPLETED)], null],
  [ERRORED, [recorded(COMPLETED), recorded(ERRORED)], null],
  [ERRORED, [recorded(STARTED)], STARTED],
  [STARTED, [recorded(COMPLETED), recorded(ERRORED)], null],
] as const)(
  '%s waits for the first delivery of its run that has not ended (case %#)',
  (type, others, expected) => {
    expect(predecessorOf(deliveryOf(type), others, [])?.eventType ?? null).toBe(expected);
  },
);

test('a delivery waits for an earlier event of its run that is not dispatched yet', () => {
  const undispatched = [deliveryOf(STARTED).event, deliveryOf(STARTED, 2).event];
  const [started] = undispatched;
  expect(predecessorOf(deliveryOf(COMPLETED), [], undispatched)).toEqual({
    eventId: started?.eventId,
    eventType: STARTED,
  });
  expect(predecessorOf(deliveryOf(COMPLETED, 3), [], undispatched)).toBeNull();
});

test('earlier events without a delivery may be undispatched; a run that succeeded sends no job.run.errored', () => {
  const succeeded = deliveryOf(COMPLETED).event;
  const failed = { ...succeeded, data: { ...succeeded.data, runStatus: 'Errored' } } as typeof succeeded;
  expect(unrecordedTypes(succeeded, [])).toEqual([STARTED]);
  expect(unrecordedTypes(failed, [])).toEqual([STARTED, ERRORED]);
  expect(unrecordedTypes(failed, [recorded(STARTED, { isUnended: false })])).toEqual([ERRORED]);
  expect(unrecordedTypes(deliveryOf(ERRORED).event, [recorded(STARTED, { runId: '2' })])).toEqual([STARTED]);
  expect(unrecordedTypes(deliveryOf(STARTED).event, [])).toEqual([]);
});

test('a first attempt is out of order if a later event of the run was sent', () => {
  const sent = [recorded(COMPLETED, { isSent: true })];
  expect(isOutOfOrder(deliveryOf(STARTED), sent)).toBe(true);
  expect(isOutOfOrder({ ...deliveryOf(STARTED), attemptCount: 1 }, sent)).toBe(false);
  expect(isOutOfOrder(deliveryOf(STARTED, 2), sent)).toBe(false);
  expect(isOutOfOrder(deliveryOf(COMPLETED), sent)).toBe(false);
  expect(isOutOfOrder(deliveryOf(STARTED), [recorded(COMPLETED)])).toBe(false);
});

test('no event waits for job.run.completed', () => {
  expect([STARTED, ERRORED, COMPLETED].map(hasSuccessors)).toEqual([true, true, false]);
});
