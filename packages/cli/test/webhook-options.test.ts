import { expect, test } from '@jest/globals';
import { withStoredMembers } from '../src/webhook-options.ts';

test('an update keeps the filters and labels that it does not name', () => {
  const webhook = {
    filters: { run_statuses: ['10'], environment_ids: ['4'] },
    labels: { team: 'data', tier: '1' },
  };
  expect(withStoredMembers({ filters: { run_statuses: [20] }, labels: { tier: '2' } }, webhook)).toEqual({
    filters: { run_statuses: [20], environment_ids: ['4'] },
    labels: { team: 'data', tier: '2' },
  });
  expect(withStoredMembers({ rate_limit: 5 }, webhook)).toEqual({ rate_limit: 5 });
  expect(withStoredMembers({ labels: { tier: '2' } }, {})).toEqual({ labels: { tier: '2' } });
});
