/** One attempt of a delivery, as the demo receiver tells of it. What is null could not be verified. */
export interface ReceivedDelivery {
  /** ISO 8601. */
  time: string;
  endpoint: string;
  verified: boolean;
  /** The HTTP status it answered. */
  status: number;
  /** How often this delivery has arrived, this time included. */
  attempt: number;
  eventId: string | null;
  eventType: string | null;
  webhookId: string | null;
  jobName: string | null;
  runId: string | null;
  runStatus: string | null;
}

export type ReceiverLine = { listening: string } | { delivery: ReceivedDelivery };

/** Null for a line that is neither. */
export function parseReceiverLine(line: string): ReceiverLine | null {
  try {
    const value = JSON.parse(line) as { listening?: string } & ReceivedDelivery;
    if (typeof value.listening === 'string') return { listening: value.listening };
    return typeof value.attempt === 'number' ? { delivery: value } : null;
  } catch {
    return null;
  }
}
