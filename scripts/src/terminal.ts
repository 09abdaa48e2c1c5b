/** What `scripts/terminal.mjs` makes. */
export interface Terminal {
  style: Record<'bold' | 'dim' | 'red' | 'green' | 'yellow', (text: string) => string>;
  line(text?: string): void;
  /** Something out of the ordinary that stops nothing. */
  note(text: string): void;
  error(text: string): void;
  /** Does the work and writes `describe(result)`, or `name`, with the time it took. */
  step<T>(name: string, work: () => T | Promise<T>, describe?: (result: T) => string): Promise<T>;
}
