import { createLogger, Lifecycle } from '@runhook/runtime';
import { withServiceLogin } from '@runhook/testing';
import { startDispatcher as openDispatcher } from '../services/dispatcher/src/app.ts';
import { readSettings as readDispatcherSettings } from '../services/dispatcher/src/settings.ts';
import { createManagement } from '../services/management/src/app.ts';
import { readSettings as readManagementSettings } from '../services/management/src/settings.ts';
import { TEST_SETTINGS } from './services.ts';

/** A service within the process of the test, for stories that do not need a separate process. */
export interface ServiceInProcess {
  url: string;
  /** Closes the service as SIGTERM does. */
  stop(): Promise<void>;
}

/** Starts the service from its sources on free ports. It reads its settings as a separate process does. */
export async function startServiceInProcess(
  name: 'management' | 'dispatcher',
  environment: Record<string, string>,
): Promise<ServiceInProcess> {
  const logger = createLogger({ service: name, level: 'silent' });
  const lifecycle = new Lifecycle({ logger });
  const settings = { ...TEST_SETTINGS, ...withServiceLogin(name, environment) };
  const start = name === 'management' ? startManagement : startDispatcher;
  const port = await start(settings, lifecycle, logger).catch(async (error: unknown) => {
    await lifecycle.close('the start failed');
    throw error;
  });
  return { url: `http://127.0.0.1:${port}`, stop: () => lifecycle.close('the test ends') };
}

type Start = (
  environment: Record<string, string>,
  lifecycle: Lifecycle,
  logger: ReturnType<typeof createLogger>,
) => Promise<number>;

const startManagement: Start = async (environment, lifecycle, logger) => {
  const settings = readManagementSettings(environment);
  return (await createManagement(settings, { consoleFolder: null, process: { logger, lifecycle } })).port;
};

const startDispatcher: Start = async (environment, lifecycle, logger) =>
  (await openDispatcher(readDispatcherSettings(environment), lifecycle, logger)).port;
