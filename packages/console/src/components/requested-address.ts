import { type RefObject, useEffect, useRef } from 'react';

/**
 * Reads the state of a page from its URL. The router updates the URL with a delay, so each change must build on `requested`
 * and set it: otherwise the second of two quick changes would undo the first.
 * @param read function of a module, whose result depends on the parameters only
 */
export function useRequestedAddress<Address>(
  parameters: URLSearchParams,
  read: (parameters: URLSearchParams) => Address,
): { address: Address; requested: RefObject<Address> } {
  const address = read(parameters);
  const requested = useRef(address);
  useEffect(() => {
    requested.current = read(parameters);
  }, [parameters, read]);
  return { address, requested };
}
