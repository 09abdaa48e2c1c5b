import type { Arrivals } from '../measure/ledger.ts';
import type { ReceivedBatch } from '../programs/receiver.ts';
import type { World } from './world.ts';

/** What has arrived since the last call. */
export async function takeArrivals({ receiver }: Pick<World, 'receiver'>): Promise<Arrivals> {
  const { eventIds, paths, timesMs } = await receiver.call<ReceivedBatch>('take');
  return { eventIds: linesOf(eventIds), paths: linesOf(paths), timesMs };
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.split('\n');
}
