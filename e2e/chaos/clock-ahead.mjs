// node --import clock-ahead.mjs: runs a process whose clock is CLOCK_AHEAD_MS ahead of all others.
const aheadMs = Number(process.env.CLOCK_AHEAD_MS);
const Clock = globalThis.Date;
const now = () => Clock.now() + aheadMs;

globalThis.Date = new Proxy(Clock, {
  construct: (_target, values, newTarget) =>
    Reflect.construct(Clock, values.length === 0 ? [now()] : values, newTarget),
  apply: () => new Clock(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
