import type { RunStatus } from '../api/types.ts';
import { readUtc } from '../events/utc.ts';
import { RUN_STATUSES } from '../words/runs.ts';

/** What the address of the list of runs says. */
export interface RunsAddress {
  /** A run's id, or a part of a job's name. */
  search: string;
  status: RunStatus | '';
  /** Of when a run started: absolute UTC times with `Z`, or empty. */
  from: string;
  to: string;
  /** From 1. */
  page: number;
}

const SEARCH_CHARACTERS_MAX = 255;

/** Reads the address; what makes no sense is as if it were not there. */
export function readRunsAddress(parameters: URLSearchParams): RunsAddress {
  const text = (name: string) => parameters.get(name) ?? '';
  const page = /^[1-9]\d{0,6}$/.test(text('page')) ? Number(text('page')) : 1;
  return {
    search: text('search').slice(0, SEARCH_CHARACTERS_MAX),
    status: RUN_STATUSES.find((status) => status === text('status')) ?? '',
    from: readUtc(text('from')),
    to: readUtc(text('to')),
    page,
  };
}

/** The address, without what is as usual. */
export function writeRunsAddress({ page, ...filters }: RunsAddress): URLSearchParams {
  const values = { ...filters, page: page === 1 ? '' : String(page) };
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''));
}

export function hasRunFilters({ search, status, from, to }: RunsAddress): boolean {
  return [search, status, from, to].some((value) => value !== '');
}
