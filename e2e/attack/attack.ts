export interface AttackOptions {
  /** Seed of the random requests; the seed of an earlier run repeats it. */
  seed: number;
  /** Time to stop at, in milliseconds since the epoch; null for the short form, which has a fixed length. */
  endsAtMs: number | null;
  /** Sends fewer requests in a round, for `npm test`. */
  isSmall?: boolean;
  log(text: string): void;
}

export interface AttackReport {
  /** Actions and their results, in Markdown. */
  table: string;
  /** One line for each violation, with the data to reproduce it. */
  problems: string[];
}

/** Attacks the running services. Opens the resources that it needs, and closes them. */
export interface Attack {
  name: string;
  run(options: AttackOptions): Promise<AttackReport>;
}
