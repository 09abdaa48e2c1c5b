/** Whether this page receives changes from the server. A page subscribes to one account at a time. */
let live = false;

export function isLive(): boolean {
  return live;
}

export function setLive(isLiveNow: boolean): void {
  live = isLiveNow;
}

/** Returns the poll interval of a query that changes invalidate: it polls only while no changes are received, or after an error. */
export function pollUnlessLive(pollMs: number) {
  return ({ state }: { state: { status: string } }): number | false =>
    live && state.status !== 'error' ? false : pollMs;
}
