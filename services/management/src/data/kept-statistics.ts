import type { Database } from '@runhook/database';
import type { StatisticsView } from '../domain/statistics-view.ts';
import { readStatistics } from './statistics.ts';

export interface StatisticsQuery {
  subscriptionId: string;
  hours: number;
}

/** Numbers that were quick to read are read each time. */
const SLOW_MS = 200;
/** The others are told again for as many times as long as they took, but never for longer than this. */
const KEPT_TIMES = 20;
const KEPT_MAX_MS = 60_000;
const KEPT_MAX = 200;

interface Kept {
  view: Promise<StatisticsView>;
  /** By the clock that was given; infinite while they are being read. */
  untilMs: number;
}

/**
 * Reads statistics, those of a busy webhook not for everybody who looks: calls at once share one statement, and what
 * took long is told again for a while. `until` says which moment the numbers are of.
 */
export function createKeptStatistics(
  pool: Database['pool'],
  { read = readStatistics, nowMs = () => performance.now() } = {},
): (query: StatisticsQuery) => Promise<StatisticsView> {
  const kept = new Map<string, Kept>();

  return (query) => {
    const key = `${query.subscriptionId} ${query.hours}`;
    const known = kept.get(key);
    if (known && nowMs() < known.untilMs) return known.view;
    const startedAtMs = nowMs();
    const reading: Kept = { view: read(pool, query), untilMs: Number.POSITIVE_INFINITY };
    kept.delete(key);
    kept.set(key, reading);
    const [oldest] = kept.keys();
    if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
    const forget = () => {
      if (kept.get(key) === reading) kept.delete(key);
    };
    reading.view.then(() => {
      const tookMs = nowMs() - startedAtMs;
      if (tookMs < SLOW_MS) forget();
      else reading.untilMs = nowMs() + Math.min(tookMs * KEPT_TIMES, KEPT_MAX_MS);
    }, forget);
    return reading.view;
  };
}
