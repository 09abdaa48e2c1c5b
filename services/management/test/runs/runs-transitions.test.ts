import { describe, expect, test } from '@jest/globals';
import {
  type RunCall,
  type RunState,
  type RunTransition,
  runTransition,
} from '../../src/runs/transitions.ts';

const START: RunCall = { call: 'start' };
const SUCCESS: RunCall = { call: 'finish', status: 'success' };
const ERRORED: RunCall = { call: 'finish', status: 'errored' };
const CANCELLED: RunCall = { call: 'finish', status: 'cancelled' };
const ARTIFACTS: RunCall = { call: 'artifacts' };

const run = (status: RunState['status'], artifactsIngested: boolean): RunState => ({
  status,
  artifactsIngested,
});

const SAME: RunTransition = { kind: 'unchanged' };
const NOT_STARTED: RunTransition = { kind: 'conflict', message: 'The run has not been started.' };
const ended = (from: string, to: string): RunTransition => ({
  kind: 'conflict',
  message: `The run has ended as ${from} and cannot end as ${to}.`,
});
const ends = (
  status: 'Success' | 'Errored' | 'Canceled',
  ...events: ('job.run.completed' | 'job.run.errored')[]
): RunTransition => ({ kind: 'changed', status, events });
const ingests = (...events: 'job.run.completed'[]): RunTransition => ({
  kind: 'changed',
  artifactsIngested: true,
  events,
});

const TABLE: [RunState | null, RunCall, RunTransition][] = [
  [null, START, { kind: 'changed', status: 'Running', events: ['job.run.started'] }],
  [null, SUCCESS, NOT_STARTED],
  [null, ERRORED, NOT_STARTED],
  [null, CANCELLED, NOT_STARTED],
  [null, ARTIFACTS, NOT_STARTED],

  [run('Running', false), START, SAME],
  [run('Running', false), SUCCESS, ends('Success')],
  [run('Running', false), ERRORED, ends('Errored', 'job.run.errored')],
  [run('Running', false), CANCELLED, ends('Canceled')],
  [run('Running', false), ARTIFACTS, ingests()],

  [run('Running', true), START, SAME],
  [run('Running', true), SUCCESS, ends('Success', 'job.run.completed')],
  [run('Running', true), ERRORED, ends('Errored', 'job.run.errored', 'job.run.completed')],
  [run('Running', true), CANCELLED, ends('Canceled')],
  [run('Running', true), ARTIFACTS, SAME],

  [run('Success', false), START, SAME],
  [run('Success', false), SUCCESS, SAME],
  [run('Success', false), ERRORED, ended('Success', 'Errored')],
  [run('Success', false), CANCELLED, ended('Success', 'Canceled')],
  [run('Success', false), ARTIFACTS, ingests('job.run.completed')],

  [run('Success', true), START, SAME],
  [run('Success', true), SUCCESS, SAME],
  [run('Success', true), ERRORED, ended('Success', 'Errored')],
  [run('Success', true), CANCELLED, ended('Success', 'Canceled')],
  [run('Success', true), ARTIFACTS, SAME],

  [run('Errored', false), START, SAME],
  [run('Errored', false), SUCCESS, ended('Errored', 'Success')],
  [run('Errored', false), ERRORED, SAME],
  [run('Errored', false), CANCELLED, ended('Errored', 'Canceled')],
  [run('Errored', false), ARTIFACTS, ingests('job.run.completed')],

  [run('Errored', true), START, SAME],
  [run('Errored', true), SUCCESS, ended('Errored', 'Success')],
  [run('Errored', true), ERRORED, SAME],
  [run('Errored', true), CANCELLED, ended('Errored', 'Canceled')],
  [run('Errored', true), ARTIFACTS, SAME],

  [run('Canceled', false), START, SAME],
  [run('Canceled', false), SUCCESS, ended('Canceled', 'Success')],
  [run('Canceled', false), ERRORED, ended('Canceled', 'Errored')],
  [run('Canceled', false), CANCELLED, SAME],
  [run('Canceled', false), ARTIFACTS, ingests()],

  [run('Canceled', true), START, SAME],
  [run('Canceled', true), SUCCESS, ended('Canceled', 'Success')],
  [run('Canceled', true), ERRORED, ended('Canceled', 'Errored')],
  [run('Canceled', true), CANCELLED, SAME],
  [run('Canceled', true), ARTIFACTS, SAME],
];

describe('every call in every state of a run has its outcome', () => {
  test.each(TABLE)('%j, %j', (state, call, expected) => {
    expect(runTransition(state, call)).toEqual(expected);
  });
});
