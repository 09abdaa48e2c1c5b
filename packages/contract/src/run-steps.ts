import Joi from 'joi';
import {
  type Problem,
  reportedText,
  reportedTime,
  toProblems,
  VALIDATION_OPTIONS,
} from './field-problems.ts';
import { isStoredRunStatus, runStatusOfCode, runStatusOfText, type StoredRunStatus } from './run-statuses.ts';
import { truncateWithEllipsis, wellFormedText } from './text.ts';

/** Limits of the steps of a run (docs/contract.md#run-steps). Bytes are those of texts in UTF-8. */
export const RUN_STEP_LIMITS = {
  stepsMax: 100,
  indexMax: 1_000_000,
  nameCharactersMax: 1_024,
  /** Limit of one text. A longer one is cut at its start. */
  textBytesMax: 1_000_000,
  /** Limit of all texts of a run. */
  runBytesMax: 20_000_000,
  /** Limit of the JSON of the steps that a message of the queue carries next to its event. */
  messageBytesMax: 256 * 1_024,
} as const;

/** A step of a run, as a runner reports it: `run_steps` of a call, and of a message of the queue. */
export interface ReportedRunStep {
  /** Position of the step, 0 or more. A step with the same index is replaced. */
  index: number;
  name: string;
  /** Number or word of a run's status: 3 or `Running`, 10 or `Success`, 20 or `Error`, 30 or `Cancelled`. */
  status: number | string;
  /** ISO 8601 UTC, up to microseconds. */
  started_at?: string | null | undefined;
  finished_at?: string | null | undefined;
  /** Text, which may have ANSI escape sequences. */
  logs?: string | null | undefined;
  debug_logs?: string | null | undefined;
}

/** A checked step: its texts are well-formed and within their limit, its times have microseconds. */
export interface RunStep {
  index: number;
  name: string;
  status: StoredRunStatus;
  started_at: string | null;
  finished_at: string | null;
  logs: string | null;
  debug_logs: string | null;
}

type RunStepsParsing = { steps: RunStep[]; problems?: never } | { steps?: never; problems: Problem[] };

/** Parses the steps of a message of the queue. Problems have the path below `run_steps`. */
export function parseRunSteps(reported: unknown): RunStepsParsing {
  const { value, error } = messageSchema.validate({ run_steps: reported }, VALIDATION_OPTIONS);
  return error ? { problems: toProblems(error, 'run_steps') } : { steps: value.run_steps };
}

const status = Joi.any().custom((value: unknown, helpers) => {
  const found =
    typeof value === 'number'
      ? runStatusOfCode(value)
      : typeof value === 'string'
        ? runStatusOfText(value)
        : null;
  return isStoredRunStatus(found)
    ? found
    : helpers.message({
        custom: '{{#label}} must be the number or the word of a run’s status, such as 10 or Success',
      });
});

const time = reportedTime.default(null);

const logs = Joi.string()
  .allow('')
  .empty(null)
  .default(null)
  .custom((text: string) => truncateStart(wellFormedText(text), RUN_STEP_LIMITS.textBytesMax));

/** Schema of `run_steps`. */
export const runStepsSchema = Joi.array<RunStep[]>()
  .items(
    Joi.object<RunStep>({
      index: Joi.number().integer().min(0).max(RUN_STEP_LIMITS.indexMax).required(),
      name: reportedText(RUN_STEP_LIMITS.nameCharactersMax).required(),
      status: status.required(),
      started_at: time,
      finished_at: time,
      logs,
      debug_logs: logs,
    }),
  )
  .max(RUN_STEP_LIMITS.stepsMax)
  .unique('index');

const messageSchema = Joi.object<{ run_steps: RunStep[] }>({ run_steps: runStepsSchema.required() });

/**
 * Returns the text, or its end after a line that says what was left out, in at most `bytesMax` bytes of UTF-8. The text
 * must be well-formed.
 */
export function truncateStart(text: string, bytesMax: number): string {
  // A UTF-16 unit has at most three bytes in UTF-8.
  if (3 * text.length <= bytesMax) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= bytesMax) return text;
  const notice = `[This log had ${bytes.length} bytes. Only its end is stored.]\n`;
  let start = Math.max(0, bytes.length - Math.max(0, bytesMax - notice.length));
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return notice + bytes.toString('utf8', start);
}

/**
 * Returns steps for a message of the queue, with well-formed texts: if they are too large, each log keeps its end.
 * Returns null if they are too large even without logs.
 */
export function limitMessageSteps(steps: readonly ReportedRunStep[]): readonly ReportedRunStep[] | null {
  const { messageBytesMax } = RUN_STEP_LIMITS;
  for (let bytesMax: number = messageBytesMax; bytesMax > NOTICE_BYTES; bytesMax = Math.floor(bytesMax / 2)) {
    const fitting = steps.map((step) => toMessageStep(step, bytesMax));
    if (stepsBytes(fitting) <= messageBytesMax) return fitting;
  }
  const withoutLogs = steps.map(({ logs, debug_logs, ...step }) => toMessageStep(step, 0));
  return stepsBytes(withoutLogs) <= messageBytesMax ? withoutLogs : null;
}

const NOTICE_BYTES = 128;

/** A queue in PostgreSQL rejects a message with NUL or half of a surrogate pair. */
function toMessageStep(
  { index, name, status, started_at, finished_at, logs, debug_logs }: ReportedRunStep,
  bytesMax: number,
): ReportedRunStep {
  const truncated = (text: string | null | undefined) =>
    typeof text === 'string' ? truncateStart(wellFormedText(text), bytesMax) : undefined;
  const step = { index, name: wellFormedText(name), status, started_at, finished_at };
  return { ...step, logs: truncated(logs), debug_logs: truncated(debug_logs) };
}

/** Returns the size of steps in a message of the queue. */
export function stepsBytes(steps: unknown): number {
  return Buffer.byteLength(JSON.stringify(steps) ?? '');
}

/** Returns the name of a step that executes a command: readers find those of dbt by this form. */
export function commandStepName(command: readonly string[]): string {
  const text = command.join(' ');
  const program = command[0]?.replace(/^.*[\\/]/, '').replace(/\.exe$/i, '');
  const { nameCharactersMax } = RUN_STEP_LIMITS;
  if (program !== 'dbt') return truncateWithEllipsis(text, nameCharactersMax - 1);
  const invoked = ['dbt', ...command.slice(1)].join(' ');
  return `Invoke dbt with \`${truncateWithEllipsis(invoked, nameCharactersMax - 32)}\``;
}
