import { type Api, createApi } from './api.ts';
import { type DatabaseContents, fillDatabase } from './database-contents.ts';
import { type DemoReceiverOptions, openDemoReceiver } from './demo-receiver.ts';
import type { DevJson, Home } from './home.ts';
import { openDatabaseServer, openQueueServer } from './servers.ts';
import { type Service, type ServiceContext, type ServiceSpec, startService } from './service.ts';
import { createServiceLogins } from './service-logins.ts';
import { dispatcherSpec, managementSpec, type ServiceEnvironment } from './service-specs.ts';
import type { StartSettings } from './settings.ts';
import type { Supervised } from './supervise.ts';
import { type SupervisionContext, superviseProcess } from './supervise.ts';

export interface StackOptions extends SupervisionContext, ServiceContext, DemoReceiverOptions {
  home: Home;
  settings: StartSettings;
  /** Called after a process was restarted, because pids and addresses may have changed. */
  onChange: () => void;
}

/** All running processes of `npm start`. */
export interface Stack {
  contents: DatabaseContents;
  api: Api;
  /** Returns the current addresses, credentials and pids. */
  describe(): DevJson;
}

const CLOSE_MARGIN_MS = 5_000;

/**
 * Opens, in this order: database, queue, tables and demo account, management, dispatcher, the demo's subscription, receiver. Each
 * registers its closer, so that they stop in reverse order.
 */
export async function openStack(options: StackOptions): Promise<Stack> {
  const { settings, stopping } = options;
  const { signal } = stopping;
  let reconcile: () => Promise<void> = async () => undefined;
  const onRestart = () => reconcile();

  const database = await openDatabaseServer({ ...options, onRestart }, settings);
  signal.throwIfAborted();
  const queue = await openQueueServer({ ...options, onRestart }, settings, database);
  signal.throwIfAborted();
  const logins = createServiceLogins(settings);
  const contents = await fillDatabase({ ...options, signal }, settings, {
    databaseUrl: database.url(),
    queueUrl: queue.url(),
    logins,
  });
  const { demo, store, encryptionKeysText } = contents;

  const servers = () => `${database.url()} ${queue.url()}`;
  let lastServers = servers();
  const environment: ServiceEnvironment = {
    databaseUrl: (service) => logins.urlOf(service, database.url()),
    queueUrl: (service) => (settings.queueUrl === null ? logins.urlOf(service, queue.url()) : queue.url()),
    encryptionKeysText,
  };
  const open = (spec: ServiceSpec) => openService(options, spec, onRestart);
  const management = await open(managementSpec(settings, environment, demo));
  const dispatcher = await open(dispatcherSpec(settings, environment));
  const baseUrl = () => management.current.url;
  const api = createApi({ baseUrl, accountId: demo.account.id, token: demo.serviceToken });
  const receiver = await openDemoReceiver(options, api, store, open, demo.jobs[0].id);

  /** Restarts or updates the parts that depend on an address that has changed. */
  async function reconcileNow(): Promise<void> {
    if (servers() !== lastServers) {
      lastServers = servers();
      await Promise.all([management.restart(), dispatcher.restart()]);
    }
    await receiver.updateSubscription();
    options.onChange();
  }
  let pendingReconcile = Promise.resolve();
  reconcile = () => {
    pendingReconcile = pendingReconcile.catch(() => undefined).then(reconcileNow);
    return pendingReconcile;
  };
  await reconcile();

  const describe = (): DevJson => ({
    baseUrl: baseUrl(),
    account: demo.account,
    user: demo.user,
    serviceToken: demo.serviceToken,
    runnerToken: demo.runnerToken,
    jobs: demo.jobs.map(({ id, name }) => ({ id, name })),
    subscription: receiver.subscription(),
    receiverUrl: receiver.url(),
    operationsUrl: management.current.operationsUrl ?? management.current.url,
    dispatcherUrl: dispatcher.current.url,
    databaseUrl: database.url(),
    managementDatabaseUrl: environment.databaseUrl('management'),
    queueUrl: queue.url(),
    processes: {
      management: management.current.pid,
      dispatcher: dispatcher.current.pid,
      receiver: receiver.pid(),
      postgres: database.pid(),
      redis: queue.pid(),
    },
  });
  return { contents, api, describe };
}

function openService(
  options: StackOptions,
  spec: ServiceSpec,
  onRestart: () => Promise<void>,
): Promise<Supervised<Service>> {
  const { name } = spec;
  const onPort = (preferredPort: number): ServiceSpec => ({ ...spec, preferredPort });
  return options.terminal.step(
    name,
    () =>
      superviseProcess<Service>(options, {
        name,
        start: (signal, previous) =>
          startService(options, onPort(previous?.port ?? spec.preferredPort), signal),
        lastLines: (service) => service.lastLines(),
        onRestart,
        stopTimeoutMs: spec.stopGraceMs + CLOSE_MARGIN_MS,
      }),
    ({ current }) => `${name} on ${current.url}`,
  );
}
