import { readStartCommand } from '@runhook/embedded';
import { webhooksUrl } from './api.ts';
import { externalEnvironment } from './child.ts';
import { parseReceiverLine, type ReceivedDelivery } from './deliveries.ts';
import type { ServiceSpec } from './service.ts';
import { isHealthy } from './service.ts';
import type { StartSettings } from './settings.ts';

const OPERATIONS_PORT = 3004;
const DISPATCHER_PORT = 3001;
export const RECEIVER_PORT = 3002;
export const RECEIVER_PATH = '/webhooks';

const STOP_MARGIN_MS = 15_000;
const RECEIVER_STOP_GRACE_MS = 5_000;

/** The variables that both services get, in addition to those that are passed on (docs/configuration.md). */
export interface ServiceEnvironment {
  databaseUrl(service: 'management' | 'dispatcher'): string;
  queueUrl(service: 'management' | 'dispatcher'): string;
  encryptionKeysText: string;
}

export function managementSpec(
  settings: StartSettings,
  environment: ServiceEnvironment,
  demo: { account: { id: number }; serviceToken: string },
): ServiceSpec {
  // Another checkout's management may respond on this port; only the one of this checkout accepts the token.
  const headers = { authorization: `Token ${demo.serviceToken}` };
  const command = readStartCommand('management');
  return {
    name: 'management',
    program: command.program,
    nodeArguments: command.nodeArguments,
    preferredPort: settings.port,
    operationsPort: OPERATIONS_PORT,
    environment: () => serviceVariables('management', settings, environment),
    isReady: async (url) =>
      (await isHealthy(`${url}/readyz`)) &&
      (await isHealthy(`${webhooksUrl(url, demo.account.id)}/subscriptions?limit=1`, headers)),
    stopGraceMs: settings.deliveryTimeoutMs + STOP_MARGIN_MS,
  };
}

export function dispatcherSpec(settings: StartSettings, environment: ServiceEnvironment): ServiceSpec {
  const command = readStartCommand('dispatcher');
  return {
    name: 'dispatcher',
    program: command.program,
    nodeArguments: command.nodeArguments,
    preferredPort: DISPATCHER_PORT,
    environment: () => serviceVariables('dispatcher', settings, environment),
    isReady: (url) => isHealthy(`${url}/readyz`),
    stopGraceMs: settings.deliveryTimeoutMs + STOP_MARGIN_MS,
  };
}

/** @param options.reject returns the job whose first `job.run.completed` is rejected, and how often; null after the demonstration */
export function receiverSpec(options: {
  preferredPort: number;
  hmacSecret: () => string;
  reject: () => { jobId: number; attempts: number } | null;
  onDelivery: (delivery: ReceivedDelivery) => void;
}): ServiceSpec {
  let listening = '';
  return {
    name: 'receiver',
    program: 'examples/receivers/express/receiver.js',
    preferredPort: options.preferredPort,
    environment() {
      listening = '';
      const reject = options.reject();
      return {
        ...externalEnvironment(process.env),
        HMAC_SECRET: options.hmacSecret(),
        ...(reject === null
          ? {}
          : { REJECT_JOB_ID: String(reject.jobId), REJECT_ATTEMPTS: String(reject.attempts) }),
      };
    },
    isReady: (url) => listening === url + RECEIVER_PATH,
    onLine(text) {
      const line = parseReceiverLine(text);
      if (line === null) return;
      if ('listening' in line) listening = line.listening;
      else options.onDelivery(line.delivery);
    },
    stopGraceMs: RECEIVER_STOP_GRACE_MS,
  };
}

function serviceVariables(
  name: 'management' | 'dispatcher',
  settings: StartSettings,
  environment: ServiceEnvironment,
): NodeJS.ProcessEnv {
  return {
    ...readStartCommand(name).environment,
    ...process.env,
    DATABASE_URL: environment.databaseUrl(name),
    QUEUE_URL: environment.queueUrl(name),
    ENCRYPTION_KEYS: environment.encryptionKeysText,
    ...settings.defaults,
  };
}
