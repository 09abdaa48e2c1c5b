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
