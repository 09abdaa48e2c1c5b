import { useEffect } from 'react';

/** The browser's tab and what a screen reader says first: the page, then the product. */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Runhook`;
  }, [title]);
}
