import { describeStory } from './story/steps.ts';
import { DIVIDED_CASES, QUEUE_CASES } from './story/world.ts';

// The whole story on the queue that story.test.ts omits, and on a log that is divided by account.
for (const story of [...QUEUE_CASES.slice(0, -1), ...DIVIDED_CASES]) describeStory(story, 'whole');
