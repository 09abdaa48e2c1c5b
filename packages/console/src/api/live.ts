/** Whether this page hears of changes; it tells of one account at a time. */
let live = false;

export function isLive(): boolean {
  return live;
}

export function setLive(now: boolean): void {
  live = now;
}

/** For what changes are heard of: asked for again and again only while they are not, or while the answer is an error. */
export function unlessLive(pollMs: number) {
  return ({ state }: { state: { status: string } }): number | false =>
    live && state.status !== 'error' ? false : pollMs;
}
