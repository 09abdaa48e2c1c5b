import { useSearchParams } from 'react-router';

export const PAGE_SIZES = [10, 25, 50, 100] as const;
const PAGE_SIZE_DEFAULT = 10;

interface ListParameters {
  search: string;
  /** From 1. */
  page: number;
  pageSize: number;
}

/** What part of the list the address asks for: `?search=&page=&size=`. What is not valid counts as not given. */
export function useListParameters(): [ListParameters, (change: Partial<ListParameters>) => void] {
  const [parameters, setParameters] = useSearchParams();
  const size = Number(parameters.get('size'));
  const page = Number(parameters.get('page'));
  const current: ListParameters = {
    search: parameters.get('search') ?? '',
    page: Number.isSafeInteger(page) && page >= 1 ? page : 1,
    pageSize: PAGE_SIZES.find((known) => known === size) ?? PAGE_SIZE_DEFAULT,
  };

  function change(changed: Partial<ListParameters>) {
    const wanted = { ...current, page: 1, ...changed };
    const isTyping = changed.search !== undefined;
    setParameters(
      (before) => {
        const next = new URLSearchParams(before);
        put(next, 'search', wanted.search, '');
        put(next, 'page', String(wanted.page), '1');
        put(next, 'size', String(wanted.pageSize), String(PAGE_SIZE_DEFAULT));
        return next;
      },
      // Every letter of a search would be a step back otherwise.
      { replace: isTyping, preventScrollReset: true },
    );
  }

  return [current, change];
}

function put(parameters: URLSearchParams, name: string, value: string, usual: string): void {
  if (value === usual) parameters.delete(name);
  else parameters.set(name, value);
}
