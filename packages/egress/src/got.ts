/*
 * got, without what it makes for messages of errors in its options: its check of types makes two `Intl.ListFormat` as it is loaded,
 * and the first of a process reads all locales that Node has, and keeps them.
 */
const { ListFormat } = Intl;

/** Made when it is asked for something. */
class ListFormatOnDemand {
  readonly #options: ConstructorParameters<typeof ListFormat>;

  constructor(...options: ConstructorParameters<typeof ListFormat>) {
    this.#options = options;
  }

  format(list: Iterable<string>): string {
    return new ListFormat(...this.#options).format(list);
  }
}

Object.assign(Intl, { ListFormat: ListFormatOnDemand });
export const { default: got, TimeoutError } = await import('got').finally(() =>
  Object.assign(Intl, { ListFormat }),
);
