import { describeStory } from './story/steps.ts';
import { DIVIDED_CASES, QUEUE_CASES } from './story/world.ts';

// npm test runs these on the system's PostgreSQL, too.
for (const story of [...QUEUE_CASES.slice(0, 1), ...DIVIDED_CASES]) describeStory(story, 'essentials');
