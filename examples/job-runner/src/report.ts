import { setTimeout as wait } from 'node:timers/promises';
import {
  type EventPublisher,
  type PublishedEvent,
  type PublishOptions,
  QueueUnavailableError,
} from '@runhook/publisher';

const WAITS_MS = [500, 1_000, 2_000, 4_000];

/** Publishes the event, with retries while the queue is unavailable. Returns whether the queue has the event. */
export async function report(
  publisher: EventPublisher,
  event: PublishedEvent,
  options: PublishOptions = {},
): Promise<boolean> {
  for (const waitMs of [...WAITS_MS, null]) {
    try {
      await publisher.publish(event, options);
      return true;
    } catch (error) {
      const { message } = error as Error;
      const isFinal = waitMs === null || !(error instanceof QueueUnavailableError);
      process.stderr.write(
        `${event.eventType} was not published${isFinal ? '' : ', trying again'}: ${message}\n`,
      );
      if (isFinal) return false;
      await wait(waitMs);
    }
  }
  return false;
}
