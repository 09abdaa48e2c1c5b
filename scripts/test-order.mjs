import { sep } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** Those that take longest, dearest first: begun late, one of them would keep a single core busy after all others. */
const LONGEST = [
  'e2e/story.test.ts',
  'e2e/console/every-page.test.ts',
  'e2e/chaos/chaos.test.ts',
  'e2e/console/recent-deliveries.test.ts',
  'services/management/test/http/refused-or-done.test.ts',
  'e2e/attack/attack.test.ts',
  'e2e/console/pictures/pictures.test.ts',
  'e2e/console/webhook-page.test.ts',
  'services/dispatcher/test/full-redis.test.ts',
  'e2e/python.test.ts',
  'packages/queue/test/backends/dead-connections.test.ts',
];

/** Jest knows how long a test takes from the run before, which a fresh clone does not have. */
export default class TestOrder extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const placeOf = ({ path }) => {
      const place = LONGEST.findIndex((name) => path.endsWith(sep + name.replaceAll('/', sep)));
      return place < 0 ? LONGEST.length : place;
    };
    return sorted.sort((one, other) => placeOf(one) - placeOf(other));
  }
}
