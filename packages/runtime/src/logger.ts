import { type DestinationStream, type Logger, pino } from 'pino';
import { redact } from './redaction.ts';

export interface LoggerOptions {
  /** Stands in every line as `service`. */
  service: string;
  /** `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`. */
  level: string;
  /** Default: standard output, written at the end of each turn of the event loop, and before an exit. */
  destination?: DestinationStream;
}

/**
 * A logger of JSON lines: ISO 8601 time, the level as a word, `service`, and whatever the call gives. Values whose name says
 * that they are secret are masked, in nested objects, in errors and in the bindings of child loggers too.
 */
export function createLogger({ service, level, destination }: LoggerOptions): Logger {
  const options = {
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: redact,
    },
    // Redaction has already rendered the error; pino's own serializer would render that once more.
    serializers: { err: (rendered: unknown) => rendered },
  };
  return redactBindings(pino(options, destination ?? openStandardOutput()));
}

const STANDARD_OUTPUT = 1;

/**
 * Lines of one turn of the event loop are one write: a dispatcher ends dozens of attempts in a turn, and a write of its
 * own for each line costs as much as making it. No line waits for another turn, and an exit writes what is left.
 */
function openStandardOutput(): DestinationStream & { flushSync(): void } {
  const output = pino.destination({ dest: STANDARD_OUTPUT, sync: true });
  let lines = '';
  const flushSync = () => {
    const written = lines;
    lines = '';
    if (written !== '') output.write(written);
  };
  process.on('exit', flushSync);
  return {
    write(line) {
      if (lines === '') setImmediate(flushSync);
      lines += line;
    },
    // pino calls it after a fatal line.
    flushSync,
  };
}

/** pino applies no formatter to a child's bindings. Children inherit from their parent, so theirs are covered too. */
function redactBindings(logger: Logger): Logger {
  const { child } = logger;
  const redactingChild = function (this: Logger, bindings: object, ...rest: []) {
    return child.call(this, redact(bindings), ...rest);
  };
  return Object.assign(logger, { child: redactingChild as typeof child });
}
