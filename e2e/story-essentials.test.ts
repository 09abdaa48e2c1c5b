import { describeStory } from './story/steps.ts';
import { DIVIDED_CASES, QUEUE_CASES } from './story/world.ts';

/** npm test runs this file also on the system's PostgreSQL if there is one; only that run tests the divided log. */
const { TEST_SYSTEM_POSTGRES_URL: system, TEST_POSTGRES_URL: server } = process.env;
const dividedCases = system === undefined || system === server ? DIVIDED_CASES : [];

for (const story of [...QUEUE_CASES.slice(0, 1), ...dividedCases]) describeStory(story, 'essentials');
