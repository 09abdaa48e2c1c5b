import { describe, expect, test } from '@jest/globals';
import { EVENT_TYPES, idDay, parseEvent } from '@runhook/contract';
import type { RunView } from '../../src/runs/run-view.ts';
import { runEvent } from '../../src/runs/transitions.ts';

const ARRIVED_AT_MS = Date.UTC(2026, 0, 31, 23, 59, 59, 7);

const ERRORED_RUN: RunView = {
  id: 218726483,
  account_id: 17,
  job_id: 123,
  job_name: 'Daily Job (dbt build)',
  project_id: 167194,
  project_name: 'Analytics',
  environment_id: 14,
  environment_name: 'Production',
  engine_version: '1.9.0',
  status: 'Errored',
  status_message: 'model orders failed',
  reason: 'Scheduled',
  created_at: '2026-01-31T23:00:00.900000Z',
  started_at: '2026-01-31T23:00:00.799999Z',
  finished_at: '2026-01-31T23:59:58.700000Z',
  errored_at: '2026-01-31T23:59:58.700000Z',
  artifacts_ingested_at: '2026-01-31T23:59:59.000000Z',
  trigger: null,
  retry_of: null,
};

const EVENT_ID = '2xBBBBBBBBBBBBBBBBBBBBBBBBB';

describe('the event of a run', () => {
  test('has the fields of the contract in order: ids of data as strings, times of the run in seconds, timestamp with nine fractional digits', () => {
    const event = runEvent('job.run.completed', ERRORED_RUN, ARRIVED_AT_MS, EVENT_ID);
    expect(JSON.stringify(event.data)).toBe(
      '{"jobId":"123","jobName":"Daily Job (dbt build)","runId":"218726483","environmentId":"14",' +
        '"environmentName":"Production","engineVersion":"1.9.0","projectName":"Analytics","projectId":"167194",' +
        '"runStatus":"Errored","runStatusCode":20,"runStatusMessage":"model orders failed","runReason":"Scheduled",' +
        '"runStartedAt":"2026-01-31T23:00:00Z","runFinishedAt":"2026-01-31T23:59:58Z"}',
    );
    expect({ ...event, data: null }).toEqual({
      eventId: EVENT_ID,
      eventType: 'job.run.completed',
      accountId: 17,
      timestamp: '2026-01-31T23:59:59.007000000Z',
      data: null,
    });
  });

  test('of type job.run.errored has runErroredAt and no runFinishedAt', () => {
    const { data } = runEvent('job.run.errored', ERRORED_RUN, ARRIVED_AT_MS);
    expect(data).toHaveProperty('runErroredAt', '2026-01-31T23:59:58Z');
    expect(data).not.toHaveProperty('runFinishedAt');
  });

  test('has "None" for a missing message and reason', () => {
    const run = {
      ...ERRORED_RUN,
      status: 'Running',
      status_message: null,
      reason: null,
    } as const;
    const { data } = runEvent('job.run.started', run, ARRIVED_AT_MS);
    expect(data).toMatchObject({
      runStatus: 'Running',
      runStatusCode: 3,
      runStatusMessage: 'None',
      runReason: 'None',
    });
    expect(Object.keys(data).at(-1)).toBe('runStartedAt');
  });

  test('has the day of its timestamp in its id', () => {
    expect(idDay('event', runEvent('job.run.started', ERRORED_RUN, ARRIVED_AT_MS).eventId)).toBe(
      '2026-01-31',
    );
  });

  test.each(EVENT_TYPES)('matches the contract of the queue unchanged: %s', (eventType) => {
    const event = runEvent(eventType, ERRORED_RUN, ARRIVED_AT_MS);
    const defaults = { eventId: () => EVENT_ID, timestampMs: 0, nowMs: ARRIVED_AT_MS, retentionDays: 30 };
    expect(JSON.stringify(parseEvent(event, defaults).event)).toBe(
      JSON.stringify({
        eventId: event.eventId,
        eventType,
        accountId: 17,
        timestamp: event.timestamp,
        data: event.data,
      }),
    );
  });
});
