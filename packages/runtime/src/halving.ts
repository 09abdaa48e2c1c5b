/** An item that a call rejected when it was passed without others, with the error. */
export interface RejectedItem<Item> {
  item: Item;
  error: unknown;
}

/**
 * Calls a function with several items. If it fails with an item fault, the items are halved until the invalid ones are
 * isolated: one invalid item among n costs about 2·log2(n) calls. `call` must be safe to repeat.
 * @returns the rejected items; the call has succeeded for all others
 * @throws the first error that is not an item fault; items that had not been passed are not processed
 */
export async function callHalving<Item>(
  items: readonly Item[],
  call: (items: readonly Item[]) => Promise<unknown>,
  isItemFault: (error: unknown) => boolean,
): Promise<RejectedItem<Item>[]> {
  if (items.length === 0) return [];
  try {
    await call(items);
    return [];
  } catch (error) {
    if (!isItemFault(error)) throw error;
    const [item] = items;
    if (items.length === 1) return [{ item: item as Item, error }];
    const rejected: RejectedItem<Item>[] = [];
    for (const part of splitInHalf(items)) rejected.push(...(await callHalving(part, call, isItemFault)));
    return rejected;
  }
}

export function splitInHalf<Item>(items: readonly Item[]): [Item[], Item[]] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}
