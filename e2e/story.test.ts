import { describeStory } from './story/steps.ts';
import { QUEUE_CASES } from './story/world.ts';

for (const story of QUEUE_CASES.slice(-1)) describeStory(story, 'whole');
