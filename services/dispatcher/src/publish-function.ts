import type { EventQueue } from '@runhook/queue';
import { type Lifecycle, type Logger, startPeriodic } from '@runhook/runtime';

/** Publishers wait longer than this for their function, which a server loses at a restart without persistence. */
const EVERY_MS = 2_000;

export interface PublishFunctionOptions {
  lifecycle: Pick<Lifecycle, 'onClose'>;
  logger: Pick<Logger, 'warn'>;
}

/** Keeps the function for publishers whose user may only add loaded on the queue's servers (ADR 65). */
export function loadPublishFunction(
  { lifecycle, logger }: PublishFunctionOptions,
  events: Pick<EventQueue, 'loadPublishFunction'>,
): void {
  let isFailing = false;
  const load = async () => {
    await events.loadPublishFunction();
    isFailing = false;
  };
  const loading = startPeriodic(EVERY_MS, load, (error) => {
    // Logged once, because the state of the queue is reported elsewhere.
    if (!isFailing) logger.warn({ err: error }, 'the function for publishers onto the queue was not loaded');
    isFailing = true;
  });
  lifecycle.onClose('publish function', () => void loading.stop());
}
