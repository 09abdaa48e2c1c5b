import Sequencer from '@jest/test-sequencer';
import { costEstimate } from './costs.mjs';

/** Starts the most expensive files first, because one that starts last would keep a single worker busy at the end. */
export default class OrderByCost extends Sequencer {
  sort(tests) {
    const costOf = costEstimate();
    const withCosts = tests.map((test) => ({ test, cost: costOf(test.path) }));
    return withCosts.sort((one, other) => other.cost - one.cost).map(({ test }) => test);
  }
}
