/**
 * What `npm start` says, for people. Plain JavaScript, because it speaks before anything is compiled.
 *
 * On a terminal, a step shows while it is under way; elsewhere only what is done is written, line by line.
 *
 * @param {NodeJS.WriteStream} [stream]
 * @param {NodeJS.ProcessEnv} [environment]
 */
export function createTerminal(stream = process.stdout, environment = process.env) {
  // Whoever reads may leave (`| head`, a closed window); what was started goes on, and is stopped, all the same.
  stream.on('error', () => undefined);
  const isTerminal = stream.isTTY === true && environment.TERM !== 'dumb';
  const style = createStyle(isTerminal && !environment.NO_COLOR);
  let underway = null;

  function line(text = '') {
    if (isTerminal && underway !== null) stream.write('\r\x1b[2K');
    stream.write(`${text}\n`);
    if (isTerminal && underway !== null) stream.write(style.dim(`… ${underway}`));
  }

  /** @type {<T>(name: string, work: () => T | Promise<T>, describe?: (result: T) => string) => Promise<T>} */
  async function step(name, work, describe = () => name) {
    const startedAt = performance.now();
    const seconds = () => style.dim(`(${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
    underway = name;
    if (isTerminal) stream.write(style.dim(`… ${name}`));
    const finish = (text) => {
      if (isTerminal) stream.write('\r\x1b[2K');
      underway = null;
      line(text);
    };
    try {
      const result = await work();
      finish(`${style.green('✓')} ${describe(result)} ${seconds()}`);
      return result;
    } catch (error) {
      finish(`${style.red('✗')} ${name} ${seconds()}`);
      throw error;
    }
  }

  return {
    style,
    line,
    step,
    note: (text) => line(`${style.yellow('!')} ${text}`),
    error: (text) => line(`\n${style.red(text)}`),
  };
}

function createStyle(hasColours) {
  const paint = (code) => (text) => (hasColours ? `\x1b[${code}m${text}\x1b[0m` : text);
  return { bold: paint(1), dim: paint(2), red: paint(31), green: paint(32), yellow: paint(33) };
}

/**
 * npm passes on to us the SIGINT that the terminal has sent us already: two of them within this time are one Ctrl-C.
 */
const ECHO_MS = 500;
const PARENT_POLL_MS = 250;

/**
 * The first Ctrl-C (or SIGTERM, or the terminal's end) aborts `signal`, and everything is stopped in order. The
 * second one runs what `onSecond` was given, and ends the process on the spot.
 *
 * @returns {{ signal: AbortSignal, onSecond(kill: () => void): void }}
 */
export function watchStopSignals() {
  const controller = new AbortController();
  const killers = [];
  let firstAt = 0;
  const onSignal = () => {
    if (!controller.signal.aborted) {
      firstAt = performance.now();
      controller.abort();
    } else if (performance.now() - firstAt > ECHO_MS) {
      for (const kill of killers) kill();
      process.exit(130);
    }
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, onSignal);
  if (process.env.npm_lifecycle_event === 'start') onOrphaned(() => controller.abort());
  return { signal: controller.signal, onSecond: (kill) => killers.unshift(kill) };
}

/** npm hands a SIGTERM to its shell only. That dies of it and leaves us running, with nobody to stop us. */
function onOrphaned(stop) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stop();
  }, PARENT_POLL_MS).unref();
}
