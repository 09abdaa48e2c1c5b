import { describe, expect, test } from '@jest/globals';
import type { EventType } from '@runhook/contract';
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

type State = [status: RunState['status'], known?: ('finish' | 'artifacts')[]];

const run = ([status, known = []]: State): RunState => ({
  status,
  finishKnown: known.includes('finish'),
  artifactsIngested: known.includes('artifacts'),
});

const SAME: RunTransition = { kind: 'unchanged' };
const NOT_STARTED: RunTransition = { kind: 'conflict', message: 'The run has not been started.' };
const ended = (from: string, to: string): RunTransition => ({
  kind: 'conflict',
  message: `The run has ended as ${from} and cannot end as ${to}.`,
});
const becomes = (state: State, ...events: EventType[]): RunTransition => ({
  kind: 'changed',
  state: run(state),
  events,
});

const TABLE: [State | null, RunCall, RunTransition][] = [
  [null, START, becomes(['Running'], 'job.run.started')],
  [null, SUCCESS, NOT_STARTED],
  [null, ERRORED, NOT_STARTED],
  [null, CANCELLED, NOT_STARTED],
  [null, ARTIFACTS, NOT_STARTED],

  [['Running'], START, SAME],
  [['Running'], SUCCESS, becomes(['Success', ['finish']])],
  [['Running'], ERRORED, becomes(['Errored', ['finish']], 'job.run.errored')],
  [['Running'], CANCELLED, becomes(['Canceled', ['finish']])],
  [['Running'], ARTIFACTS, becomes(['Running', ['artifacts']])],

  [['Running', ['artifacts']], START, SAME],
  [['Running', ['artifacts']], SUCCESS, becomes(['Success', ['finish', 'artifacts']], 'job.run.completed')],
  [
    ['Running', ['artifacts']],
    ERRORED,
    becomes(['Errored', ['finish', 'artifacts']], 'job.run.errored', 'job.run.completed'),
  ],
  [['Running', ['artifacts']], CANCELLED, becomes(['Canceled', ['finish', 'artifacts']])],
  [['Running', ['artifacts']], ARTIFACTS, SAME],

  [['Success', ['finish']], START, SAME],
  [['Success', ['finish']], SUCCESS, SAME],
  [['Success', ['finish']], ERRORED, ended('Success', 'Errored')],
  [['Success', ['finish']], CANCELLED, ended('Success', 'Canceled')],
  [['Success', ['finish']], ARTIFACTS, becomes(['Success', ['finish', 'artifacts']], 'job.run.completed')],

  // Also the state after only job.run.completed was published.
  [['Success', ['finish', 'artifacts']], START, SAME],
  [['Success', ['finish', 'artifacts']], SUCCESS, SAME],
  [['Success', ['finish', 'artifacts']], ERRORED, ended('Success', 'Errored')],
  [['Success', ['finish', 'artifacts']], CANCELLED, ended('Success', 'Canceled')],
  [['Success', ['finish', 'artifacts']], ARTIFACTS, SAME],

  // The state after only job.run.errored was published.
  [['Errored'], START, SAME],
  [['Errored'], SUCCESS, ended('Errored', 'Success')],
  [['Errored'], ERRORED, becomes(['Errored', ['finish']])],
  [['Errored'], CANCELLED, ended('Errored', 'Canceled')],
  [['Errored'], ARTIFACTS, becomes(['Errored', ['finish', 'artifacts']], 'job.run.completed')],

  // The state after job.run.errored was published after the artifacts.
  [['Errored', ['artifacts']], START, SAME],
  [['Errored', ['artifacts']], SUCCESS, ended('Errored', 'Success')],
  [['Errored', ['artifacts']], ERRORED, becomes(['Errored', ['finish', 'artifacts']], 'job.run.completed')],
  [['Errored', ['artifacts']], CANCELLED, ended('Errored', 'Canceled')],
  [['Errored', ['artifacts']], ARTIFACTS, becomes(['Errored', ['finish', 'artifacts']], 'job.run.completed')],

  [['Errored', ['finish']], START, SAME],
  [['Errored', ['finish']], SUCCESS, ended('Errored', 'Success')],
  [['Errored', ['finish']], ERRORED, SAME],
  [['Errored', ['finish']], CANCELLED, ended('Errored', 'Canceled')],
  [['Errored', ['finish']], ARTIFACTS, becomes(['Errored', ['finish', 'artifacts']], 'job.run.completed')],

  [['Errored', ['finish', 'artifacts']], START, SAME],
  [['Errored', ['finish', 'artifacts']], SUCCESS, ended('Errored', 'Success')],
  [['Errored', ['finish', 'artifacts']], ERRORED, SAME],
  [['Errored', ['finish', 'artifacts']], CANCELLED, ended('Errored', 'Canceled')],
  [['Errored', ['finish', 'artifacts']], ARTIFACTS, SAME],

  [['Canceled', ['finish']], START, SAME],
  [['Canceled', ['finish']], SUCCESS, ended('Canceled', 'Success')],
  [['Canceled', ['finish']], ERRORED, ended('Canceled', 'Errored')],
  [['Canceled', ['finish']], CANCELLED, SAME],
  [['Canceled', ['finish']], ARTIFACTS, becomes(['Canceled', ['finish', 'artifacts']])],

  [['Canceled', ['finish', 'artifacts']], START, SAME],
  [['Canceled', ['finish', 'artifacts']], SUCCESS, ended('Canceled', 'Success')],
  [['Canceled', ['finish', 'artifacts']], ERRORED, ended('Canceled', 'Errored')],
  [['Canceled', ['finish', 'artifacts']], CANCELLED, SAME],
  [['Canceled', ['finish', 'artifacts']], ARTIFACTS, SAME],
];

describe('runTransition returns the outcome of every call in every state', () => {
  test.each(TABLE)('for the state %j and the call %j', (state, call, expected) => {
    expect(runTransition(state && run(state), call)).toEqual(expected);
  });
});
