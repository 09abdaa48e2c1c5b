// Uses no Node.js API, so that the console can preview what a format sends.
import type { EventType } from '../event-types.ts';
import type { JobRunEvent } from '../events.ts';

/** Input of a format. The same input always gives the same bytes. */
export interface FormatInput {
  event: JobRunEvent;
  /** `name` is the subscription's name at fan-out. */
  subscription: { id: string; name: string };
  /** Address of the console (`PUBLIC_URL`), for links; null if it is not set. */
  consoleUrl: string | null;
  /** Values of the format's options, by name. */
  options: Readonly<Record<string, string>>;
}

/** The body of a request, or the reason why the format sends nothing for the event. */
export type Rendering =
  | { body: string; contentType: string; nothing?: never }
  | { nothing: string; body?: never; contentType?: never };

/** A response of the target, as the format interprets it. */
export interface TargetResponse {
  statusCode: number;
  /** The beginning of the body, at most 16 KiB. */
  body: string;
  /** Whether `body` is the complete body. */
  isComplete: boolean;
  /** The beginning of the body as the log stores it: well-formed, with echoed secrets masked. For messages. */
  loggedBody: string;
}

/**
 * Consequence of a response for the delivery: `failed` ends its retries, and `failed_and_off` also deactivates the
 * webhook, because its address will never accept anything again.
 */
export type Interpretation =
  | { result: 'delivered'; message?: never }
  | { result: 'retry' | 'failed' | 'failed_and_off'; message: string };

/** An option of a format: a secret text, which responses and logs mask. */
export interface FormatOption {
  /** Name of the field in the form. */
  label: string;
  /** Explains where users find the value. */
  hint: string;
  required: boolean;
  pattern: RegExp;
  /** Completes "format_options.<name> …" if the value does not match `pattern`. */
  problem: string;
}

/** A row of a format's response table (docs/contract.md#formats), for documentation and tests. */
export interface ResponseRow {
  statusCode: number;
  body: string;
  /** False if the body is cut off; true when omitted. */
  isComplete?: boolean;
  result: Interpretation['result'];
}

/** The language of a target: a pure function of the event, and the meaning of the target's responses. */
export interface Format {
  /** Value of the field `format`, and name of the format's folder. */
  name: string;
  /** The display name. */
  label: string;
  /** The event types for which the format sends something, at least for some run statuses. */
  eventTypes: readonly EventType[];
  /** Event type of the preview. */
  sampleEventType: EventType;
  /** Whether the address is one of the target's. */
  recognises(url: URL): boolean;
  /** The members of `format_options`; empty if the format has none. */
  options: Readonly<Record<string, FormatOption>>;
  render(input: FormatInput): Rendering;
  /** Header of the signature if the subscription names none; null to send no such header. */
  signatureHeader: 'Authorization' | null;
  /** Returns the meaning of a response; null if its status decides as without a format: a 2xx is delivered. */
  interpret(response: TargetResponse): Interpretation | null;
  /** Samples of responses, one or more for each row of the format's table. */
  responses: readonly ResponseRow[];
  /**
   * Limits of the target in code points or, if the name ends in `Bytes`, bytes. Texts are truncated to them. Tests check
   * the largest possible events against the limits that the target publishes.
   */
  limits: Readonly<Record<string, number>>;
  /**
   * The state of a job that the event reports to the target, if the target tracks jobs: an event is not sent if one with
   * another state, whose run ended later, was delivered, and an event with the state of another event of its run repeats
   * it. Null if the event reports none; undefined if the target does not track jobs.
   */
  jobState?(event: JobRunEvent): string | null;
}
