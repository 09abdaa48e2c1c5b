import { STORED_RUN_STATUSES, type StoredRunStatus } from '@runhook/contract/run-statuses';
import { readUtc } from '../events/utc.ts';

/** Filters in the URL of the list of runs. */
export interface RunsAddress {
  /** A run's id, or a part of a job's name. */
  search: string;
  status: StoredRunStatus | '';
  /** Start of the range in which a run started: an absolute UTC time with `Z`, or empty; `to` is its end. */
  from: string;
  to: string;
  /** Page number, from 1. */
  page: number;
}

const SEARCH_CHARACTERS_MAX = 255;

/** Parses the URL. Invalid values are ignored. */
export function readRunsAddress(parameters: URLSearchParams): RunsAddress {
  const text = (name: string) => parameters.get(name) ?? '';
  const page = /^[1-9]\d{0,6}$/.test(text('page')) ? Number(text('page')) : 1;
  return {
    search: text('search').slice(0, SEARCH_CHARACTERS_MAX),
    status: STORED_RUN_STATUSES.find((status) => status === text('status')) ?? '',
    from: readUtc(text('from')),
    to: readUtc(text('to')),
    page,
  };
}

/** Serializes the values that differ from their defaults. */
export function writeRunsAddress({ page, ...filters }: RunsAddress): URLSearchParams {
  const values = { ...filters, page: page === 1 ? '' : String(page) };
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''));
}

export function hasRunFilters({ search, status, from, to }: RunsAddress): boolean {
  return [search, status, from, to].some((value) => value !== '');
}
