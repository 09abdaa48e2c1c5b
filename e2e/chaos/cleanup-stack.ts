/** Closes resources in reverse order. All closers are called; the first error is thrown at the end. */
export class CleanupStack {
  readonly #closers: (() => Promise<unknown>)[] = [];

  add(closer: () => Promise<unknown>): void {
    this.#closers.push(closer);
  }

  async run(): Promise<void> {
    const errors: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse()) {
      await close().catch((error) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  }
}
