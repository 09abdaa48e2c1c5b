import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

/** Imports the built package, as a service in production does: build packages/runtime first. */
const fixture = fileURLToPath(new URL('./traces.fixture.mjs', import.meta.url));

async function open(
  environment: Record<string, string>,
): Promise<{ isOn: boolean; loaded: number; isInLines: boolean }> {
  const { stdout } = await promisify(execFile)(process.execPath, [fixture], { env: environment });
  return JSON.parse(stdout);
}

test.each([
  ['no endpoint is set', {}],
  ['the endpoint is set to nothing', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
  ['the SDK is disabled', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_SDK_DISABLED: 'true' }],
])('the SDK is not loaded if %s', async (_, environment) => {
  expect(await open(environment as Record<string, string>)).toEqual({
    isOn: false,
    loaded: 0,
    isInLines: false,
  });
});

test.each(['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'])(
  'the SDK is loaded if %s is set, and log lines contain the ids of their span',
  async (variable) => {
    const { isOn, loaded, isInLines } = await open({ [variable]: 'http://127.0.0.1:1' });
    expect([isOn, isInLines]).toEqual([true, true]);
    expect(loaded).toBeGreaterThan(10);
  },
);
