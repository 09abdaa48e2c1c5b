import { useEffect } from 'react';
import { type Blocker, useBlocker } from 'react-router';

/** Asks before the page is left while `isGuarded()`: by the router's blocker within the console, else by the browser. */
export function useLeaveGuard(isGuarded: () => boolean): Blocker {
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent) => {
      if (isGuarded()) event.preventDefault();
    };
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [isGuarded]);
  return useBlocker(
    ({ currentLocation, nextLocation }) => isGuarded() && currentLocation.pathname !== nextLocation.pathname,
  );
}
