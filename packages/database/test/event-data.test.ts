import { expect, test } from '@jest/globals';
import { createId, EVENT_TYPES, sampleEvent } from '@runhook/contract';
import { isStoredEventData, storedEventData } from '@runhook/database';

const sampleOf = (eventType: (typeof EVENT_TYPES)[number]) =>
  sampleEvent(eventType, { accountId: 1, eventId: createId('event'), now: new Date('2026-11-23T10:11:12Z') });

test.each(EVENT_TYPES)('the data of %s is stored with named fields in a fixed order', (eventType) => {
  const event = sampleOf(eventType);
  const stored: unknown = JSON.parse(storedEventData(event));
  expect(isStoredEventData(stored)).toBe(true);
  expect(stored).toEqual(event.data);
  const reversed = Object.fromEntries(Object.entries(event.data).reverse()) as typeof event.data;
  expect(storedEventData({ ...event, data: reversed } as typeof event)).toBe(storedEventData(event));
});

test.each([[null], ['text'], [[]], [{}]])('%j is not the data of an event', (value) => {
  expect(isStoredEventData(value)).toBe(false);
});
