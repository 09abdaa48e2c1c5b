import { attemptsLeft, isId } from '@runhook/contract';
import { createQueueBackend, openDeliveryQueue } from '@runhook/queue';
import { printable, table } from '@runhook/runtime/terminal-text';
import {
  cancelDelivery,
  type DeliveryDetails,
  findDeliveryKey,
  readDeliveryDetails,
  redeliver as redeliverDelivery,
} from '../deliveries/operator-actions.ts';
import {
  AdminError,
  type Command,
  type CommandGroup,
  NotFoundError,
  type Resources,
  requiredOption,
  UsageError,
} from './command.ts';

interface DeliveryOption {
  id: string;
}

const idOption = () =>
  requiredOption(
    '--id <id>',
    'id of the delivery, as in logs and the console',
    (option) => (text: string) => {
      if (isId('delivery', text)) return text;
      throw new UsageError(`${option} must be the id of a delivery.`);
    },
  );

type DeliveryKey = NonNullable<Awaited<ReturnType<typeof findDeliveryKey>>>;

const show: Command<DeliveryOption> = {
  name: 'show',
  summary: 'show a delivery with its attempts',
  description:
    'Shows the state of a delivery of any account, its event, and each attempt with the response of the endpoint. Bodies and headers are in the JSON only.',
  options: [idOption()],
  examples: ['delivery show --id dlv_…', 'delivery show --id dlv_… --json'],
  async run(options, resources) {
    const details = await requireDeliveryDetails(resources, await requireDeliveryKey(resources, options));
    return { json: details, text: deliveryDetailsText(details) };
  },
};

const redeliver: Command<DeliveryOption> = {
  name: 'redeliver',
  summary: 'start a new cycle of a finished delivery',
  description:
    'Starts a new cycle of a finished delivery: one attempt at once, then retries. With QUEUE_URL it is queued at once; without it, dispatchers find it within half a minute.',
  options: [idOption()],
  examples: ['delivery redeliver --id dlv_…'],
  usesQueue: true,
  async run(options, resources) {
    const key = await requireDeliveryKey(resources, options);
    const cycle = await redeliverDelivery(resources.pool, key);
    if (cycle === null)
      throw new AdminError('conflict', '--id: the delivery is still pending, or its webhook is inactive.');
    const isQueued = await enqueueDelivery(resources, key, cycle);
    const details = await requireDeliveryDetails(resources, key);
    const when = isQueued ? 'is sent again now' : 'is sent again within half a minute';
    return { json: details, text: `Delivery ${key.id} ${when}.` };
  },
};

const cancel: Command<DeliveryOption> = {
  name: 'cancel',
  summary: 'cancel a pending delivery',
  description:
    'Cancels a pending delivery, with a reason that its log shows. An attempt in flight is not interrupted.',
  options: [idOption()],
  examples: ['delivery cancel --id dlv_…'],
  async run(options, resources) {
    const key = await requireDeliveryKey(resources, options);
    const isCancelled = await cancelDelivery(resources.pool, key);
    const details = await requireDeliveryDetails(resources, key);
    if (!isCancelled)
      throw new AdminError('conflict', `--id: the delivery is ${details.delivery.status}, not pending.`);
    return { json: details, text: `Delivery ${key.id} is cancelled.` };
  },
};

async function requireDeliveryKey({ pool }: Resources, { id }: DeliveryOption): Promise<DeliveryKey> {
  const key = await findDeliveryKey(pool, id);
  if (key === null) throw new NotFoundError('--id: the log has no such delivery.');
  return key;
}

async function requireDeliveryDetails({ pool }: Resources, key: DeliveryKey): Promise<DeliveryDetails> {
  const details = await readDeliveryDetails(pool, key);
  if (details === null) throw new NotFoundError('--id: the log no longer has this delivery.');
  return details;
}

/**
 * Retries that the queue job allows: the highest value of DELIVERY_MAX_RETRIES, because this command does not know the
 * setting of the dispatchers. They apply it to the delivery.
 */
const RETRIES_MAX = 20;

/** Returns whether the queue accepted the job. A committed redelivery takes place in either case. */
async function enqueueDelivery({ queueUrl }: Resources, key: DeliveryKey, cycle: number): Promise<boolean> {
  if (queueUrl === undefined) return false;
  const queue = openDeliveryQueue(createQueueBackend(queueUrl), () => undefined);
  const attemptsRemaining = attemptsLeft({ retriesMax: RETRIES_MAX }, { cycle, attemptCount: cycle });
  try {
    const { id: deliveryId, accountId } = key;
    await queue.add([{ deliveryId, cycle, accountId, delayMs: 0, attemptsLeft: attemptsRemaining }]);
    return true;
  } catch {
    return false;
  } finally {
    await queue.close();
  }
}

function deliveryDetailsText({ delivery, attempts }: DeliveryDetails): string {
  const { id, status, reason, error_code, event_type, event_id, run_id, next_attempt_at } = delivery;
  const facts = [
    ['delivery', id],
    ['state', [status, reason ?? error_code].filter(Boolean).join(': ')],
    ['account', delivery.account_id],
    ['webhook', `${delivery.subscription_id} ${delivery.webhook_name}`],
    ['event', `${event_type} ${event_id}`],
    ['job and run', `${delivery.job_id}, ${run_id}`],
    ['created', timeText(delivery.created_at)],
    ...(next_attempt_at === null ? [] : [['next attempt', timeText(next_attempt_at)]]),
  ];
  const lines = facts.map(([name = '', value = '']) => `${name.padEnd(14)}${printable(value)}`);
  const rows = attempts.map(({ number, trigger, started_at, duration_ms, http_status_code, error }) => [
    String(number),
    trigger,
    timeText(started_at),
    duration_ms === null ? '-' : `${duration_ms} ms`,
    http_status_code,
    error?.code ?? '-',
  ]);
  const heading = ['ATTEMPT', 'TRIGGER', 'STARTED', 'TOOK', 'STATUS', 'ERROR'];
  return [...lines, '', attempts.length === 0 ? 'No attempts.' : table(heading, rows)].join('\n');
}

/** @param micros since the epoch, as digits */
function timeText(micros: string): string {
  return new Date(Number(micros) / 1_000).toISOString();
}

export const deliveryGroup: CommandGroup = {
  name: 'delivery',
  summary: 'deliveries of any account',
  commands: [show, redeliver, cancel] as Command[],
};
