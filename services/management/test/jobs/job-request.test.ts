import { expect, test } from '@jest/globals';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import type { Schema } from '../../src/http/openapi/field-schemas.ts';
import { parseJobUpdate, parseNewJob } from '../../src/jobs/job-request.ts';
import { createStrictSchemaChecker } from '../response-checker.ts';

const document = openApiDocument();
const check = createStrictSchemaChecker(document);
const { JobFields, JobChanges } = document.components.schemas as Record<string, Schema>;

const ACCOUNT_ID = 1;
const JOB = { name: 'Nightly', project_id: 3, environment_name: 'Production' };
const DATE = { type: 'every_day' };
const TIME = { type: 'every_hour' };

test.each<[string, object, boolean]>([
  ['ids', { ...JOB, environment_name: undefined, environment_id: 4 }, true],
  ['names', { ...JOB, project_id: undefined, project_name: 'Analytics' }, true],
  ['a name and no id', { ...JOB, project_id: null, project_name: 'Analytics' }, true],
  ['an id and a name', { ...JOB, project_name: 'Analytics' }, true],
  ['no project', { ...JOB, project_id: undefined }, false],
  ['null for a project', { ...JOB, project_id: null }, false],
  ['null for the name of a project', { ...JOB, project_name: null }, false],
  ['no environment', { ...JOB, environment_name: undefined }, false],
  ['neither', { name: 'Nightly' }, false],
])('a new job with %s is valid by the schema if the service accepts it', (_, body, isValid) => {
  const sent = JSON.parse(JSON.stringify(body));
  const isAccepted = parseNewJob(sent, ACCOUNT_ID).problems === undefined;
  const hasSchema = check(JobFields as Schema, sent, 'body').length === 0;
  expect({ isAccepted, hasSchema }).toEqual({ isAccepted: isValid, hasSchema: isValid });
});

const conditionWith = (condition: object | null) => ({ job_completion_trigger_condition: condition });

test.each<[object, boolean]>([
  [{ settings: {}, execution: {}, triggers: {}, schedule: {} }, true],
  [{ settings: { threads: null }, triggers: { schedule: null }, schedule: { date: null, time: null } }, true],
  [{ schedule: { date: { ...DATE, days: null }, time: { ...TIME, interval: null, hours: null } } }, true],
  [{ schedule: { date: { days: [1] } } }, false],
  [{ schedule: { date: { type: null } } }, false],
  [{ schedule: { time: {} } }, false],
  [{ schedule: { time: { type: null } } }, false],
  [conditionWith(null), true],
  [conditionWith({}), false],
  [conditionWith({ condition: null }), false],
  [conditionWith({ condition: { job_id: 7, project_id: 3 } }), true],
  [conditionWith({ condition: { job_id: 7, project_id: 3, statuses: null } }), true],
  [conditionWith({ condition: { job_id: 7 } }), false],
  [conditionWith({ condition: { project_id: 3 } }), false],
  [conditionWith({ condition: { job_id: null, project_id: 3 } }), false],
])('a change with %j is valid by the schema if the service accepts it', (body, isValid) => {
  const isAccepted = parseJobUpdate(body, ACCOUNT_ID, 12).problems === undefined;
  const hasSchema = check(JobChanges as Schema, body, 'body').length === 0;
  expect({ isAccepted, hasSchema }).toEqual({ isAccepted: isValid, hasSchema: isValid });
});
