import { LRUCache } from 'lru-cache';
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';

export interface LoggerOptions {
  /** Written to every line as `service`. */
  service: string;
  /** `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`. */
  level: string;
  /** Default: standard output, written at the end of each event loop iteration and before an exit. */
  destination?: DestinationStream;
}

/** Additional fields by logger. A map, because their source may be opened after the first lines. */
const extraFields = new WeakMap<object, () => object>();

/**
 * Adds the fields that `fields` returns to every line of a logger and of its children. It is called for each line and
 * must return little data and no secrets.
 */
export function addLogFields(logger: Logger, fields: () => object): void {
  extraFields.set(logger, fields);
}

/**
 * Creates a logger of JSON lines: ISO 8601 time, the level as a word, `service`, and the fields of the call. Values
 * whose names indicate a secret are masked, also in nested objects, in errors and in the bindings of child loggers.
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
    mixin: () => extraFields.get(logger)?.() ?? {},
    // Redaction has already serialized the error; pino's serializer would serialize it a second time.
    serializers: { err: (rendered: unknown) => rendered },
  };
  const logger: Logger = redactBindings(pino(options, destination ?? openStandardOutput()));
  return logger;
}

const STANDARD_OUTPUT = 1;

/**
 * Writes all lines of one event loop iteration at once: a dispatcher ends dozens of attempts in an iteration, and a
 * write for each line costs as much as creating it. The remaining lines are written before an exit.
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
    // pino calls flushSync after a fatal line.
    flushSync,
  };
}

/**
 * pino applies no formatter to a child's bindings. Children inherit the method, so their children are covered as well.
 */
function redactBindings(logger: Logger): Logger {
  const { child } = logger;
  const redactingChild = function (this: Logger, bindings: object, ...rest: []) {
    return child.call(this, redact(bindings), ...rest);
  };
  return Object.assign(logger, { child: redactingChild as typeof child });
}

const mask = '[redacted]';

/** pino prints five levels, so deeper values never appear. */
const depthMax = 6;

const secretName =
  /(^(proxy)?authorization|cookies?|apikeys?|secrets?|passwords?|passphrase|tokens?|signature|encryptionkeys|privatekey)$/;

/**
 * Caches the result per name: a service logs a few names repeatedly. Bounded, because names may come from outside, such
 * as header names.
 */
const secretNameCache = new LRUCache<string, boolean>({ max: 1_000 });

/** Whether the name indicates a secret: `apiKey`, `api_key`, `X-Api-Key`, `hmac_secret`, `set-cookie`, … */
function isSecretName(name: string): boolean {
  const cached = secretNameCache.get(name);
  if (cached !== undefined) return cached;
  const isSecret = secretName.test(name.toLowerCase().replaceAll(/[-_]/g, ''));
  secretNameCache.set(name, isSecret);
  return isSecret;
}

/**
 * Returns a copy with all secrets masked, at any depth that is logged, or the value itself if it contains none. Errors
 * are serialized as by pino, because their fields may contain a request with its headers.
 */
function redact(value: object): Record<string, unknown> {
  return redactDeep(value, 0, new Map()) as Record<string, unknown>;
}

/** `seen` prevents a second walk of a value that occurs twice or contains itself. */
function redactDeep(value: unknown, depth: number, seen: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null || serializesItself(value)) return value;
  if (depth > depthMax) return '[deep]';
  const redactedBefore = seen.get(value);
  if (redactedBefore !== undefined) return redactedBefore;
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

/** Dates, buffers and URLs serialize themselves. */
function serializesItself(value: object): boolean {
  return ArrayBuffer.isView(value) || 'toJSON' in value;
}

/** A boolean such as `apiKey: true` only states that a secret exists. */
function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && typeof value !== 'boolean';
}
