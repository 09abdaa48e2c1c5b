import type { ReceivedDelivery } from './received-delivery.ts';
import type { Terminal } from './terminal.ts';

const EVENT_TYPE_WIDTH = 'job.run.completed'.length;

/** A delivery as one line: time, event, endpoint, attempt, status, whether the signature was verified, and the job. */
export function deliveryLine(delivery: ReceivedDelivery, style: Terminal['style']): string {
  const { time, eventType, endpoint, attempt, status, verified, jobName } = delivery;
  const isAccepted = status >= 200 && status <= 299;
  return [
    style.dim(localTime(time)),
    style.bold((eventType ?? 'unknown event').padEnd(EVENT_TYPE_WIDTH)),
    endpoint,
    `attempt ${attempt}`,
    (isAccepted ? style.green : style.yellow)(`${status} ${isAccepted ? 'accepted' : 'refused '}`),
    verified ? style.green('signature verified') : style.red('signature NOT verified'),
    style.dim(jobName ?? ''),
  ]
    .join('  ')
    .trimEnd();
}

function localTime(time: string): string {
  const date = new Date(time);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}
