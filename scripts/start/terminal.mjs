/**
 * Prints the output of `npm start`. It is plain JavaScript, because it runs before anything is compiled.
 *
 * A terminal shows a step while it runs; otherwise only finished steps are printed, line by line.
 *
 * @param {NodeJS.WriteStream} [stream]
 * @param {NodeJS.ProcessEnv} [environment]
 */
export function createTerminal(stream = process.stdout, environment = process.env) {
  // The reader of the output may end (`| head`, a closed window); the processes must still be stopped in order.
  stream.on('error', () => undefined);
  const isTerminal = stream.isTTY === true && environment.TERM !== 'dumb';
  const style = createStyle(isTerminal && !environment.NO_COLOR);
  let currentStep = null;

  function line(text = '') {
    if (isTerminal && currentStep !== null) stream.write('\r\x1b[2K');
    stream.write(`${text}\n`);
    if (isTerminal && currentStep !== null) stream.write(style.dim(`… ${currentStep}`));
  }

  /** @type {<T>(name: string, work: () => T | Promise<T>, describe?: (result: T) => string) => Promise<T>} */
  async function step(name, work, describe = () => name) {
    const startedAt = performance.now();
    const seconds = () => style.dim(`(${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
    currentStep = name;
    if (isTerminal) stream.write(style.dim(`… ${name}`));
    const finish = (text) => {
      if (isTerminal) stream.write('\r\x1b[2K');
      currentStep = null;
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

/** npm passes on the SIGINT that the terminal has already sent to this process, so two within this time count as one Ctrl-C. */
const SIGNAL_ECHO_MS = 500;
const PARENT_POLL_MS = 250;

/**
 * The first Ctrl-C (or SIGTERM, or the end of the terminal) aborts `signal`, and everything is stopped in order. The second one
 * calls the functions of `onSecondSignal`, and exits immediately.
 *
 * @returns {{ signal: AbortSignal, onSecondSignal(kill: () => void): void }}
 */
export function watchStopSignals() {
  const controller = new AbortController();
  const killers = [];
  let firstAt = 0;
  const onSignal = () => {
    if (!controller.signal.aborted) {
      firstAt = performance.now();
      controller.abort();
    } else if (performance.now() - firstAt > SIGNAL_ECHO_MS) {
      for (const kill of killers) kill();
      process.exit(130);
    }
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, onSignal);
  if (process.env.npm_lifecycle_event === 'start') onOrphaned(() => controller.abort());
  return { signal: controller.signal, onSecondSignal: (kill) => killers.unshift(kill) };
}

/** Detects the end of the parent. npm sends a SIGTERM to its shell only, which ends without stopping this process. */
function onOrphaned(stop) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stop();
  }, PARENT_POLL_MS).unref();
}
