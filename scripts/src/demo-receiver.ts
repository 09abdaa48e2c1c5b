import type { Api } from './api.ts';
import type { CredentialsStore } from './credentials.ts';
import { type DemoSubscription, ensureSubscription } from './demo-subscription.ts';
import type { PortChooser } from './ports.ts';
import type { ReceivedDelivery } from './received-delivery.ts';
import type { Service, ServiceSpec } from './service.ts';
import { RECEIVER_PATH, RECEIVER_PORT, receiverSpec } from './service-specs.ts';
import type { Supervised } from './supervise.ts';
import type { Terminal } from './terminal.ts';

export interface DemoReceiverOptions {
  terminal: Terminal;
  choosePort: PortChooser;
  onSteppedOver(name: string, taken: number, port: number): void;
  refuse: () => { runId: number; attempts: number } | null;
  onDelivery: (delivery: ReceivedDelivery) => void;
}

/** The demo's subscription, and the endpoint it names. */
export interface DemoReceiver {
  subscription(): { id: string; hmacSecret: string };
  url(): string;
  pid(): number;
  /** Points the subscription to where the receiver is now. */
  follow(): Promise<void>;
}

/** The receiver must know the secret, and the subscription where the receiver is: so its port is chosen first. */
export async function openDemoReceiver(
  options: DemoReceiverOptions,
  api: Api,
  store: CredentialsStore,
  open: (spec: ServiceSpec) => Promise<Supervised<Service>>,
): Promise<DemoReceiver> {
  const { terminal, choosePort, onSteppedOver, refuse, onDelivery } = options;
  const port = await choosePort('receiver', RECEIVER_PORT);
  if (port !== RECEIVER_PORT) onSteppedOver('receiver', RECEIVER_PORT, port);
  let subscribedUrl = `http://127.0.0.1:${port}${RECEIVER_PATH}`;
  let subscription: DemoSubscription = await terminal.step(
    'demo subscription',
    () => ensureSubscription(api, store, subscribedUrl),
    ({ id, outcome }) => `demo subscription ${id} ${outcome}, through the API`,
  );
  const hmacSecret = () => subscription.hmacSecret;
  const receiver = await open(receiverSpec({ preferredPort: port, hmacSecret, refuse, onDelivery }));
  const url = () => receiver.current.url + RECEIVER_PATH;
  return {
    subscription: () => ({ id: subscription.id, hmacSecret: subscription.hmacSecret }),
    url,
    pid: () => receiver.current.pid,
    async follow() {
      if (url() === subscribedUrl) return;
      const wantedUrl = url();
      subscription = await ensureSubscription(api, store, wantedUrl);
      subscribedUrl = wantedUrl;
      // Somebody had deleted it, and the one made instead has another secret.
      if (subscription.outcome === 'created') await receiver.restart();
    },
  };
}
