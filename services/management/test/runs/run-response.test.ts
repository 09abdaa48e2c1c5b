import { expect, test } from '@jest/globals';
import { runResponse } from '../../src/runs/run-response.ts';
import { RUNNING } from '../../src/runs/schemas-openapi.ts';

const at = (minute: number) => `2026-11-20T10:0${minute}:00.000000Z`;
const run = { ...RUNNING, created_at: at(2), started_at: at(1) };

test.each([
  ['its record after a late report of its start', {}, at(2)],
  ['its start', { started_at: at(3) }, at(3)],
  ['its end after its artifacts', { finished_at: at(5), artifacts_ingested_at: at(4) }, at(5)],
  ['its artifacts after its end', { finished_at: at(4), artifacts_ingested_at: at(5) }, at(5)],
  ['its error, without a known end', { errored_at: at(4) }, at(4)],
])('updated_at of a run is the latest of its times: that of %s', (_, times, updatedAt) => {
  expect(runResponse({ ...run, ...times }, { baseUrl: '' }).updated_at).toBe(updatedAt);
});
