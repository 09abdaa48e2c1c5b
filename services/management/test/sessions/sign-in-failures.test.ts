import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { createSignInFailures, type SignInFailure } from '../../src/sessions/sign-in-failures.ts';

const ADA: SignInFailure = {
  reason: 'wrong_password',
  email: 'ada@example.com',
  clientAddress: '192.0.2.7',
  userId: 7,
};
const UNKNOWN: SignInFailure = { ...ADA, reason: 'unknown_email', userId: null };

/** @param query stores the counts; gets the parameters of the statement */
function openFailures(query: (values: unknown[]) => Promise<void>) {
  const lines: object[] = [];
  const totals: unknown[] = [];
  const failures = createSignInFailures({
    pool: { query: ((_text: string, values: unknown[]) => query(values)) as never },
    log: { info: (fields) => void lines.push(fields) },
    total: { inc: (labels) => void totals.push(labels) },
    encryptionKeys: [{ name: 'test', key: randomBytes(32) }],
  });
  return { failures, lines, totals };
}

test('each failed sign-in has a log line with its reason, address and hashed e-mail address, and counts in the metric', () => {
  const { failures, lines, totals } = openFailures(async () => undefined);
  failures.record(ADA);
  failures.record({ ...UNKNOWN, email: 'eve@example.com' });
  failures.record({ ...ADA, reason: 'limited', userId: null });
  const emailHash = expect.stringMatching(/^[0-9a-f]{64}$/);
  const line = { clientAddress: '192.0.2.7', emailHash };
  expect(lines).toEqual([
    { ...line, reason: 'wrong_password', userId: 7 },
    { ...line, reason: 'unknown_email', userId: null },
    { ...line, reason: 'limited', userId: null },
  ]);
  const [first, second, third] = lines.map((fields) => (fields as { emailHash: string }).emailHash);
  expect(third).toBe(first);
  expect(second).not.toBe(first);
  expect(totals).toEqual([{ reason: 'wrong_password' }, { reason: 'unknown_email' }, { reason: 'limited' }]);
});

test('failed sign-ins of users are stored as one count for each user and network, and those of unknown e-mail addresses are not', async () => {
  const stored: unknown[][] = [];
  const { failures } = openFailures(async (values) => void stored.push(values));
  for (let times = 0; times < 3; times++) failures.record(ADA);
  failures.record({ ...ADA, clientAddress: '192.0.2.200' });
  failures.record({ ...ADA, clientAddress: '2001:db8::1' });
  failures.record(UNKNOWN);
  await failures.flush();
  await failures.flush();
  expect(stored).toEqual([
    [
      [7, 7],
      ['192.0.2.0/24', '2001:db8:0:0::/64'],
      [4, 1],
    ],
  ]);
});

test('counts of failed sign-ins that cannot be stored are stored with the next ones', async () => {
  const stored: unknown[][] = [];
  let isAvailable = false;
  const { failures } = openFailures(async (values) => {
    if (!isAvailable) throw new Error('unavailable');
    stored.push(values);
  });
  failures.record(ADA);
  await expect(failures.flush()).rejects.toThrow('unavailable');
  failures.record(ADA);
  isAvailable = true;
  await failures.flush();
  expect(stored).toEqual([[[7], ['192.0.2.0/24'], [2]]]);
});
