import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { describeStartFailure, EnvironmentError } from '../src/index.ts';

const nothing = () => null;

test('a port in use and an address of another machine are each explained in one sentence', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const failureAt = async (where: { port: number; host: string }) => {
    const server = createServer().listen(where);
    const [error] = await once(server, 'error');
    return describeStartFailure(error, nothing);
  };
  expect(await failureAt({ port, host: '127.0.0.1' })).toBe(
    `Cannot listen on 127.0.0.1:${port}: another process listens there already.`,
  );
  // The address is in a block for documentation, so no machine has it.
  expect(await failureAt({ port: 0, host: '203.0.113.7' })).toMatch(
    /^Cannot listen on 203\.0\.113\.7.*: no interface of this machine has that address \(HOST\)\.$/,
  );
  taken.close();
});

test('invalid settings are listed unchanged, and an error that the caller explains is one line', () => {
  const settings = new EnvironmentError(['PORT must be a number']);
  expect(describeStartFailure(settings, nothing)).toBe(settings.message);
  expect(describeStartFailure(new Error('x'), () => 'The database\n  refuses.')).toBe(
    'The database refuses.',
  );
});

test('a connection that a server refuses is not mistaken for a listening problem', () => {
  const connectError = Object.assign(new Error('connect'), { syscall: 'connect', code: 'EACCES' });
  expect(describeStartFailure(connectError, nothing)).toContain('Error: connect\n    at ');
});

test('a defect is shown with its stack', () => {
  expect(describeStartFailure(new TypeError('oh'), nothing)).toMatch(/^TypeError: oh\n {4}at /);
  expect(describeStartFailure('text', nothing)).toBe('text');
});
