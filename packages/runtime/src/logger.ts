import { LRUCache } from 'lru-cache';
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';

export interface LoggerOptions {
  /** Stands in every line as `service`. */
  service: string;
  /** `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`. */
  level: string;
  /** Default: standard output, written at the end of each turn of the event loop, and before an exit. */
  destination?: DestinationStream;
}

/** By logger; whatever makes it may be opened after the first lines. */
const eachLine = new WeakMap<object, () => object>();

/**
 * Has every line of a logger, and of its children, say more: what `fields` answers when the line is written, which must be
 * little and no secret.
 */
export function addToEachLine(logger: Logger, fields: () => object): void {
  eachLine.set(logger, fields);
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
    mixin: () => eachLine.get(logger)?.() ?? {},
    // Redaction has already rendered the error; pino's own serializer would render that once more.
    serializers: { err: (rendered: unknown) => rendered },
  };
  const logger: Logger = redactBindings(pino(options, destination ?? openStandardOutput()));
  return logger;
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
    process.off('exit', flushSync);
    if (written !== '') output.write(written);
  };
  return {
    write(line) {
      if (lines === '') {
        setImmediate(flushSync);
        process.on('exit', flushSync);
      }
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

const mask = '[redacted]';

/** pino prints five levels; what lies deeper never appears. */
const depthMax = 6;

const secretName =
  /(^(proxy)?authorization|cookies?|apikeys?|secrets?|passwords?|passphrase|tokens?|signature|encryptionkeys|privatekey)$/;

/** What was found of names: a service logs the same few all day. Others may come from outside, as header names do. */
const knownNames = new LRUCache<string, boolean>({ max: 1_000 });

/** Whether what goes by this name is a secret: `apiKey`, `api_key`, `X-Api-Key`, `hmac_secret`, `set-cookie`, … */
function isSecretName(name: string): boolean {
  const known = knownNames.get(name);
  if (known !== undefined) return known;
  const isSecret = secretName.test(name.toLowerCase().replaceAll(/[-_]/g, ''));
  knownNames.set(name, isSecret);
  return isSecret;
}

/**
 * A copy with every secret masked, at any depth a log line shows; the value itself when there is nothing to mask. Errors
 * become what pino prints of them, wherever they stand, because their own fields may hold a request with its headers.
 */
function redact(value: object): Record<string, unknown> {
  return redactDeep(value, 0, new Map()) as Record<string, unknown>;
}

/** `seen` keeps a value that is met twice, or that holds itself, from being walked again. */
function redactDeep(value: unknown, depth: number, seen: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null || hasOwnForm(value)) return value;
  if (depth > depthMax) return '[deep]';
  const known = seen.get(value);
  if (known !== undefined) return known;
  seen.set(value, '[circular]');
  const source = value instanceof Error ? stdSerializers.err(value) : value;
  const redacted = redactFields(source as Record<string, unknown>, depth, seen);
  seen.set(value, redacted);
  return redacted;
}

function redactFields(source: Record<string, unknown>, depth: number, seen: Map<object, unknown>): unknown {
  let copy: Record<string, unknown> | null = null;
  for (const name of Object.keys(source)) {
    const before = source[name];
    const after = isSecretName(name) && isPresent(before) ? mask : redactDeep(before, depth + 1, seen);
    if (after === before) continue;
    copy ??= Array.isArray(source) ? Object.assign([], source) : { ...source };
    copy[name] = after;
  }
  return copy ?? source;
}

/** Dates, buffers and URLs render themselves. */
function hasOwnForm(value: object): boolean {
  return ArrayBuffer.isView(value) || 'toJSON' in value;
}

/** Flags such as `apiKey: true` say that there is one, not which. */
function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && typeof value !== 'boolean';
}
