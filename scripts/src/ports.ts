import { findFreePort } from '@runhook/embedded';

/** Stepping by ten keeps the ports of one checkout together: 3010, 3011, 3012. */
const STEP = 10;
const STEPS_MAX = 20;

/**
 * Hands out ports of 127.0.0.1, by name. `preferred` when nobody has it, else one ten or more above it, else any.
 * None is given to two names; asking again for a name may give the same one.
 */
export type PortChooser = (name: string, preferred: number) => Promise<number>;

export function createPortChooser(): PortChooser {
  const chosen = new Map<string, number>();
  return async (name, preferred) => {
    chosen.delete(name);
    const others = new Set(chosen.values());
    const port = (await nextFree(preferred, others)) ?? (await anyFree(others));
    chosen.set(name, port);
    return port;
  };
}

async function nextFree(preferred: number, others: ReadonlySet<number>): Promise<number | null> {
  if (preferred === 0) return null;
  for (let port = preferred; port <= Math.min(preferred + STEP * STEPS_MAX, 65_535); port += STEP) {
    if (!others.has(port) && !(await findFreePort(port)).wasTaken) return port;
  }
  return null;
}

async function anyFree(others: ReadonlySet<number>): Promise<number> {
  while (true) {
    const { port } = await findFreePort();
    if (!others.has(port)) return port;
  }
}
