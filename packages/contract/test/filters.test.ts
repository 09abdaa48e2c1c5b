import { describe, expect, test } from '@jest/globals';
import {
  type EventFilters,
  type EventType,
  eventMatches,
  FILTER_LIMITS,
  filterSets,
  filtersSchema,
  filtersView,
  IdSet,
  type Mismatch,
  toProblems,
  unmatchableFilters,
  VALIDATION_OPTIONS,
} from '@runhook/contract';

const event = {
  eventType: 'job.run.errored',
  data: { jobId: '7', environmentId: '30', projectId: '5', runStatusCode: 20 },
} as const;

describe('eventMatches', () => {
  const selection = {
    active: true,
    eventTypes: ['job.run.errored'],
    jobIds: new IdSet([8, 7]),
    filters: null,
  };
  const withFilters = (filters: EventFilters) => ({ filters: filterSets(filters) });

  test.each([
    ['its job and event type', {}],
    ['all jobs when it names none', { jobIds: new IdSet([]) }],
    ['its run status', withFilters({ run_statuses: [10, 20] })],
    ['its environment and project', withFilters({ environment_ids: [31, 30], project_ids: [5] })],
    ['every event when its filters are empty', withFilters({ run_statuses: [], environment_ids: [] })],
  ])('a subscription matches %s', (_case, change) => {
    expect(eventMatches({ ...selection, ...change }, event)).toEqual({ matches: true });
  });

  test.each<[string, object, Mismatch]>([
    ['while inactive', { active: false, eventTypes: [] }, 'inactive'],
    ['of another type', { eventTypes: ['job.run.completed'], jobIds: new IdSet([70]) }, 'event_type'],
    ['of another job', { jobIds: new IdSet([70, 77]), ...withFilters({ run_statuses: [10] }) }, 'job'],
    ['with another status', withFilters({ run_statuses: [10], environment_ids: [1] }), 'run_status'],
    ['of another environment', withFilters({ environment_ids: [3, 300], project_ids: [1] }), 'environment'],
    ['of another project', withFilters({ run_statuses: [20], project_ids: [55] }), 'project'],
  ])('the reason for not matching an event %s is the first failed condition', (_case, change, reason) => {
    expect(eventMatches({ ...selection, ...change }, event)).toEqual({ matches: false, reason });
  });

  test('ids up to the largest exact integer are distinguished', () => {
    const large = Number.MAX_SAFE_INTEGER;
    const filters = filterSets({ environment_ids: [large] });
    const inEnvironment = (id: number) => ({ ...event, data: { ...event.data, environmentId: String(id) } });
    expect(eventMatches({ ...selection, filters }, inEnvironment(large)).matches).toBe(true);
    expect(eventMatches({ ...selection, filters }, inEnvironment(large - 1)).matches).toBe(false);
  });
});

describe('filtersSchema', () => {
  const parse = (filters: unknown) => filtersSchema.label('filters').validate(filters, VALIDATION_OPTIONS);
  const problems = (filters: unknown) => {
    const { error } = parse(filters);
    return error ? toProblems(error, 'filters').map(({ message }) => message) : [];
  };

  test.each([
    ['an absent value', undefined, undefined],
    ['null', null, null],
    ['an empty object', {}, null],
    ['empty members', { run_statuses: [], environment_ids: null }, null],
    [
      'numbers and digits',
      { run_statuses: [20, '10'], project_ids: ['5'] },
      { run_statuses: [20, 10], project_ids: [5] },
    ],
    ['single values', { environment_ids: 30, project_ids: '5' }, { environment_ids: [30], project_ids: [5] }],
    ['repeated ids', { environment_ids: [3, '3', 1] }, { environment_ids: [3, 1] }],
  ])('reads %s', (_case, filters, read) => {
    expect(parse(filters)).toEqual({ value: read });
  });

  test.each([
    ['a status that no event has', { run_statuses: [30] }, 'run_statuses must be 3, 10 or 20'],
    ['a word for a status', { run_statuses: ['Success'] }, 'run_statuses must be 3, 10 or 20'],
    [
      'an id of zero',
      { environment_ids: [0] },
      'environment_ids must be integers that are ids of environments',
    ],
    [
      'an inexact id',
      { project_ids: ['9007199254740993'] },
      'project_ids must be integers that are ids of projects',
    ],
    [
      'too many ids',
      { project_ids: Array.from({ length: FILTER_LIMITS.projectIdsMax + 1 }, (_, index) => index + 1) },
      'project_ids must not name more than 1000',
    ],
    [
      'an unknown member',
      { environment_id: [1] },
      'environment_id is not a filter: they are run_statuses, environment_ids, project_ids',
    ],
    ['an array', [20], 'filters must be of type object'],
    ['text', 'errored', 'filters must be of type object'],
  ])('rejects %s', (_case, filters, message) => {
    expect(problems(filters)).toEqual([message]);
  });
});

test('responses have digits and no empty members', () => {
  expect(filtersView({ run_statuses: [20], project_ids: [] })).toEqual({ run_statuses: ['20'] });
  expect(filtersView({})).toBeNull();
  expect(filtersView(null)).toBeNull();
});

test.each<[EventType[], number[], string | null]>([
  [['job.run.completed'], [20], null],
  [['job.run.completed'], [10], null],
  [['job.run.started', 'job.run.completed'], [20], null],
  [['job.run.completed'], [], null],
  [
    ['job.run.completed'],
    [3],
    'match no event: the runs of job.run.completed have the status 10 or 20, not 3',
  ],
  [
    ['job.run.errored'],
    [3, 10],
    'match no event: the runs of job.run.errored have the status 20, not 3 or 10',
  ],
  [
    ['job.run.started', 'job.run.errored'],
    [10],
    'match no event: the runs of job.run.started and job.run.errored have the status 3 or 20, not 10',
  ],
])(
  'the event types %j with the statuses %j can match an event or say why not',
  (eventTypes, statuses, problem) => {
    expect(unmatchableFilters(eventTypes, { run_statuses: statuses })).toBe(problem);
  },
);
