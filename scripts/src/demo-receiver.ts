import { EVENT_TYPES } from '@runhook/contract';
import { type Api, ApiFailed } from './api.ts';
import type { CredentialsStore } from './database-contents.ts';
import type { ReceivedDelivery } from './deliveries.ts';
import type { PortChooser, Service, ServiceSpec } from './service.ts';
import { RECEIVER_PATH, RECEIVER_PORT, receiverSpec } from './service-specs.ts';
import type { Supervised } from './supervise.ts';
import type { Terminal } from './terminal.ts';

export interface DemoReceiverOptions {
  terminal: Terminal;
  choosePort: PortChooser;
  onPortTaken(name: string, taken: number, port: number): void;
  /** Returns the attempts of the first `job.run.completed` of the job to reject; null after the demonstration. */
  reject: (jobId: number) => { jobId: number; attempts: number } | null;
  onDelivery: (delivery: ReceivedDelivery) => void;
}

/** The demo's subscription and its endpoint. */
export interface DemoReceiver {
  subscription(): { id: string; hmacSecret: string };
  url(): string;
  pid(): number;
  /** Changes the URL of the subscription to that of the receiver. */
  updateSubscription(): Promise<void>;
}

/** Opens the demo receiver. It needs the secret of the subscription, which needs its URL, so the port is chosen first. */
export async function openDemoReceiver(
  options: DemoReceiverOptions,
  api: Api,
  store: CredentialsStore,
  open: (spec: ServiceSpec) => Promise<Supervised<Service>>,
  jobId: number,
): Promise<DemoReceiver> {
  const { terminal, choosePort, onPortTaken, onDelivery } = options;
  const reject = () => options.reject(jobId);
  const port = await choosePort('receiver', RECEIVER_PORT);
  if (port !== RECEIVER_PORT) onPortTaken('receiver', RECEIVER_PORT, port);
  let subscribedUrl = `http://127.0.0.1:${port}${RECEIVER_PATH}`;
  let subscription: DemoSubscription = await terminal.step(
    'demo subscription',
    () => ensureSubscription(api, store, subscribedUrl),
    ({ id, outcome }) => `demo subscription ${id} ${outcome}, through the API`,
  );
  const hmacSecret = () => subscription.hmacSecret;
  const receiver = await open(receiverSpec({ preferredPort: port, hmacSecret, reject, onDelivery }));
  const url = () => receiver.current.url + RECEIVER_PATH;
  return {
    subscription: () => ({ id: subscription.id, hmacSecret: subscription.hmacSecret }),
    url,
    pid: () => receiver.current.pid,
    async updateSubscription() {
      if (url() === subscribedUrl) return;
      const receiverUrl = url();
      subscription = await ensureSubscription(api, store, receiverUrl);
      subscribedUrl = receiverUrl;
      // A user had deleted the subscription, and the new one has another secret.
      if (subscription.outcome === 'created') await receiver.restart();
    },
  };
}

interface Subscription {
  id: string;
  name: string;
  description: string;
  event_types: string[];
  job_ids: string[];
  client_url: string;
  active: boolean;
}

export interface DemoSubscription {
  id: string;
  hmacSecret: string;
  outcome: 'created' | 'unchanged' | 'updated';
}

/**
 * Creates the demo's subscription through the API, unless it exists. If the existing one would not deliver every event to
 * `clientUrl`, it is updated and keeps its name and description.
 */
async function ensureSubscription(
  api: Api,
  store: CredentialsStore,
  clientUrl: string,
): Promise<DemoSubscription> {
  const stored = store.credentials.subscription;
  const found = stored === undefined ? null : await findSubscription(api, stored.id);
  if (stored !== undefined && found !== null) {
    if (isUpToDate(found, clientUrl)) return { ...stored, outcome: 'unchanged' };
    const { name, description } = found;
    await api.put(`/subscription/${stored.id}`, { name, description, ...subscriptionFields(clientUrl) });
    return { ...stored, outcome: 'updated' };
  }
  const { id, hmac_secret: hmacSecret } = await api.post<{ id: string; hmac_secret: string }>(
    '/subscriptions',
    {
      name: 'Demo receiver',
      description: 'Made by npm start for its demonstration.',
      ...subscriptionFields(clientUrl),
    },
  );
  store.credentials.subscription = { id, hmacSecret };
  store.save();
  return { id, hmacSecret, outcome: 'created' };
}

function subscriptionFields(clientUrl: string) {
  return { client_url: clientUrl, event_types: EVENT_TYPES, job_ids: [], active: true };
}

function isUpToDate(found: Subscription, clientUrl: string): boolean {
  const { client_url, active, job_ids, event_types } = found;
  const hasEveryType = EVENT_TYPES.every((type) => event_types.includes(type));
  return client_url === clientUrl && active && job_ids.length === 0 && hasEveryType;
}

async function findSubscription(api: Api, id: string): Promise<Subscription | null> {
  try {
    return await api.get<Subscription>(`/subscription/${id}`);
  } catch (error) {
    if (error instanceof ApiFailed && error.status === 404) return null;
    throw error;
  }
}
