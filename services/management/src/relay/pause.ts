/**
 * The waiting of a loop. `wake` ends a pause that may be woken, and counts for the next one when it comes between
 * pauses; `end` ends every pause for good.
 */
export interface Pause {
  forMs(waitMs: number): Promise<void>;
  forMsOrWake(waitMs: number): Promise<void>;
  wake(): void;
  /** Wakes up to now are answered by the work that follows. */
  forgetWake(): void;
  end(): void;
}

export function createPause(): Pause {
  let woken = false;
  let ended = false;
  let current: { wakeable: boolean; finish: () => void } | undefined;

  function pause(waitMs: number, wakeable: boolean): Promise<void> {
    if (ended || (wakeable && woken)) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = () => {
        clearTimeout(timer);
        current = undefined;
        resolve();
      };
      const timer = setTimeout(finish, waitMs);
      current = { wakeable, finish };
    });
  }

  return {
    forMs: (waitMs) => pause(waitMs, false),
    forMsOrWake: (waitMs) => pause(waitMs, true),
    wake() {
      woken = true;
      if (current?.wakeable) current.finish();
    },
    forgetWake() {
      woken = false;
    },
    end() {
      ended = true;
      current?.finish();
    },
  };
}
