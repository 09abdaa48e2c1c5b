import { describe, expect, test } from '@jest/globals';
import type { EventType } from '@runhook/contract';
import {
  type RunCall,
  type RunState,
  type RunTransition,
  transitionRun,
} from '../../src/runs/transitions.ts';

const START: RunCall = { call: 'start' };
const SUCCESS: RunCall = { call: 'finish', status: 'success' };
const ERRORED: RunCall = { call: 'finish', status: 'errored' };
const CANCELLED: RunCall = { call: 'finish', status: 'cancelled' };
const ARTIFACTS: RunCall = { call: 'artifacts' };

type State = [status: RunState['status'], recordedParts?: ('finish' | 'artifacts')[]];

const run = ([status, recordedParts = []]: State): RunState => ({
  status,
  hasFinishTime: recordedParts.includes('finish'),
  hasArtifacts: recordedParts.includes('artifacts'),
});

const SAME: RunTransition = { kind: 'unchanged' };
const NOT_STARTED: RunTransition = {
  kind: 'conflict',
  message: 'The run has not been started.',
  hasEnded: false,
};
const endConflict = (from: string, to: string): RunTransition => ({
  kind: 'conflict',
  message: `The run has ended as ${from} and cannot end as ${to}.`,
  hasEnded: true,
});
const changesTo = (state: State, ...events: EventType[]): RunTransition => ({
  kind: 'changed',
  state: run(state),
  events,
});

const TABLE: [State | null, RunCall, RunTransition][] = [
  [null, START, changesTo(['Running'], 'job.run.started')],
  [null, SUCCESS, NOT_STARTED],
  [null, ERRORED, NOT_STARTED],
  [null, CANCELLED, NOT_STARTED],
  [null, ARTIFACTS, NOT_STARTED],

  [['Running'], START, SAME],
  [['Running'], SUCCESS, changesTo(['Success', ['finish']])],
  [['Running'], ERRORED, changesTo(['Errored', ['finish']], 'job.run.errored')],
  [['Running'], CANCELLED, changesTo(['Canceled', ['finish']])],
  [['Running'], ARTIFACTS, changesTo(['Running', ['artifacts']])],

  [['Running', ['artifacts']], START, SAME],
  [['Running', ['artifacts']], SUCCESS, changesTo(['Success', ['finish', 'artifacts']], 'job.run.completed')],
  [
    ['Running', ['artifacts']],
    ERRORED,
    changesTo(['Errored', ['finish', 'artifacts']], 'job.run.errored', 'job.run.completed'),
  ],
  [['Running', ['artifacts']], CANCELLED, changesTo(['Canceled', ['finish', 'artifacts']])],
  [['Running', ['artifacts']], ARTIFACTS, SAME],

  [['Success', ['finish']], START, SAME],
  [['Success', ['finish']], SUCCESS, SAME],
  [['Success', ['finish']], ERRORED, endConflict('Success', 'Errored')],
  [['Success', ['finish']], CANCELLED, endConflict('Success', 'Canceled')],
  [['Success', ['finish']], ARTIFACTS, changesTo(['Success', ['finish', 'artifacts']], 'job.run.completed')],

  // Also the state after only job.run.completed was published.
  [['Success', ['finish', 'artifacts']], START, SAME],
  [['Success', ['finish', 'artifacts']], SUCCESS, SAME],
  [['Success', ['finish', 'artifacts']], ERRORED, endConflict('Success', 'Errored')],
  [['Success', ['finish', 'artifacts']], CANCELLED, endConflict('Success', 'Canceled')],
  [['Success', ['finish', 'artifacts']], ARTIFACTS, SAME],

  // The state after only job.run.errored was published.
  [['Errored'], START, SAME],
  [['Errored'], SUCCESS, endConflict('Errored', 'Success')],
  [['Errored'], ERRORED, changesTo(['Errored', ['finish']])],
  [['Errored'], CANCELLED, endConflict('Errored', 'Canceled')],
  [['Errored'], ARTIFACTS, changesTo(['Errored', ['finish', 'artifacts']], 'job.run.completed')],

  // The state after job.run.errored was published after the artifacts.
  [['Errored', ['artifacts']], START, SAME],
  [['Errored', ['artifacts']], SUCCESS, endConflict('Errored', 'Success')],
  [['Errored', ['artifacts']], ERRORED, changesTo(['Errored', ['finish', 'artifacts']], 'job.run.completed')],
  [['Errored', ['artifacts']], CANCELLED, endConflict('Errored', 'Canceled')],
  [
    ['Errored', ['artifacts']],
    ARTIFACTS,
    changesTo(['Errored', ['finish', 'artifacts']], 'job.run.completed'),
  ],

  [['Errored', ['finish']], START, SAME],
  [['Errored', ['finish']], SUCCESS, endConflict('Errored', 'Success')],
  [['Errored', ['finish']], ERRORED, SAME],
  [['Errored', ['finish']], CANCELLED, endConflict('Errored', 'Canceled')],
  [['Errored', ['finish']], ARTIFACTS, changesTo(['Errored', ['finish', 'artifacts']], 'job.run.completed')],

  [['Errored', ['finish', 'artifacts']], START, SAME],
  [['Errored', ['finish', 'artifacts']], SUCCESS, endConflict('Errored', 'Success')],
  [['Errored', ['finish', 'artifacts']], ERRORED, SAME],
  [['Errored', ['finish', 'artifacts']], CANCELLED, endConflict('Errored', 'Canceled')],
  [['Errored', ['finish', 'artifacts']], ARTIFACTS, SAME],

  [['Canceled', ['finish']], START, SAME],
  [['Canceled', ['finish']], SUCCESS, endConflict('Canceled', 'Success')],
  [['Canceled', ['finish']], ERRORED, endConflict('Canceled', 'Errored')],
  [['Canceled', ['finish']], CANCELLED, SAME],
  [['Canceled', ['finish']], ARTIFACTS, changesTo(['Canceled', ['finish', 'artifacts']])],

  [['Canceled', ['finish', 'artifacts']], START, SAME],
  [['Canceled', ['finish', 'artifacts']], SUCCESS, endConflict('Canceled', 'Success')],
  [['Canceled', ['finish', 'artifacts']], ERRORED, endConflict('Canceled', 'Errored')],
  [['Canceled', ['finish', 'artifacts']], CANCELLED, SAME],
  [['Canceled', ['finish', 'artifacts']], ARTIFACTS, SAME],
];

describe('transitionRun returns the outcome of every call in every state', () => {
  test.each(TABLE)('for the state %j and the call %j', (state, call, expected) => {
    expect(transitionRun(state && run(state), call)).toEqual(expected);
  });
});
