export interface AttackOptions {
  /** Brings a run back. */
  seed: number;
  /** When to stop, in milliseconds since the epoch; null for the short form, which is of one length. */
  endsAtMs: number | null;
  /** Sends fewer requests in a round, for `npm test`. */
  isSmall?: boolean;
  say(text: string): void;
}

export interface AttackReport {
  /** What was done and what came of it, in Markdown. */
  table: string;
  /** What must not be, a line each, with what it takes to see it again. */
  problems: string[];
}

/** One thing that is done to the running services. It opens what it needs and closes it. */
export interface Attack {
  name: string;
  run(options: AttackOptions): Promise<AttackReport>;
}
