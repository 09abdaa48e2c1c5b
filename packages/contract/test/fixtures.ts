import type { EventType, JobRunEvent, RunDetails } from '@runhook/contract';

export const HMAC_SECRET = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';
export const SUBSCRIPTION = { id: 'wsu_2Zk0fGq5mH4s8JrXc1VbNwTyUeA', name: 'Nightly – run «alerts»' };

const run: RunDetails = {
  jobId: '123',
  jobName: 'Daily build',
  runId: '12345',
  environmentId: '1234',
  environmentName: 'Production',
  engineVersion: '1.9.2',
  projectName: 'Warehouse "Demo"',
  projectId: '5678',
  runStatus: 'Running',
  runStatusCode: 3,
  runStatusMessage: 'None',
  runReason: 'Started by Zoë 🚀',
  runStartedAt: '2026-01-31T19:28:07Z',
};

const identity = {
  accountId: 1,
  eventId: 'wev_2Zk0fHXpQ1aBcDeFgHiJkLmNoPq',
  timestamp: '2026-01-31T19:31:20.742812345Z',
};

export const EVENTS = {
  'job.run.started': { ...identity, eventType: 'job.run.started', data: run },
  'job.run.completed': {
    ...identity,
    eventType: 'job.run.completed',
    data: { ...run, runStatus: 'Success', runStatusCode: 10, runFinishedAt: '2026-01-31T19:31:20Z' },
  },
  'job.run.errored': {
    ...identity,
    eventType: 'job.run.errored',
    data: {
      ...run,
      runStatus: 'Errored',
      runStatusCode: 20,
      runStatusMessage: 'Model "a" failed:\n\tline 1\u0000',
      runErroredAt: '2026-01-31T19:31:19Z',
    },
  },
} as const satisfies Record<EventType, JobRunEvent>;
