/** What `scripts/stop-signals.mjs` makes. */
export interface Stopping {
  /** Aborted by the first Ctrl-C. */
  signal: AbortSignal;
  /** Runs on the second one, just before the process ends; what was given last comes first. */
  onSecond(kill: () => void): void;
}
