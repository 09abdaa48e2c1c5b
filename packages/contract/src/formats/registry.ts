// Uses no Node.js API, so that the console can import it (`@runhook/contract/formats`). A test compares the list with
// the folders: a new format is a folder and a line here.
import { cloudevents } from './cloudevents/index.ts';
import { discord } from './discord/index.ts';
import type { Format } from './format.ts';
import { pagerduty } from './pagerduty/index.ts';
import { runhook } from './runhook/index.ts';
import { slack } from './slack/index.ts';
import { teams } from './teams/index.ts';

export type {
  Format,
  FormatInput,
  FormatOption,
  Interpretation,
  Rendering,
  ResponseRow,
  TargetResponse,
} from './format.ts';

/** All formats, in the order of the form; the first one is the default. */
export const FORMATS: readonly [Format, ...Format[]] = [
  runhook,
  slack,
  teams,
  discord,
  pagerduty,
  cloudevents,
];

export const FORMAT_NAMES: readonly string[] = FORMATS.map(({ name }) => name);

/** Returns null if there is no such format. Null and undefined are the default format. */
export function formatByName(name: string | null | undefined): Format | null {
  return FORMATS.find((format) => format.name === (name ?? runhook.name)) ?? null;
}

/** Returns the format of the target that has the address; null if no format recognises it. */
export function recogniseFormat(url: string): Format | null {
  if (!URL.canParse(url)) return null;
  const parsed = new URL(url);
  return FORMATS.find((format) => format.recognises(parsed)) ?? null;
}

export interface FormatOptionProblem {
  /** `format_options`, or `format_options.<name>`. */
  field: string;
  /** A sentence that begins with the field. */
  message: string;
}

/**
 * Validates the values of the format's options; each must be present, so masks must have been replaced by the stored
 * values. Null means none.
 */
export function formatOptionProblems(
  format: Format,
  values: Readonly<Record<string, unknown>> | null,
): FormatOptionProblem[] {
  const problem = (field: string, text: string): FormatOptionProblem => ({
    field,
    message: `${field} ${text}`,
  });
  const unknown = Object.keys(values ?? {})
    .filter((name) => !Object.hasOwn(format.options, name))
    .map((name) => problem(`format_options.${name}`, `is not an option of the format ${format.name}`));
  const invalid = Object.entries(format.options).flatMap(([name, option]) => {
    const value = values !== null && Object.hasOwn(values, name) ? values[name] : undefined;
    const field = `format_options.${name}`;
    if (value === undefined)
      return option.required ? [problem(field, `is required by the format ${format.name}`)] : [];
    return typeof value === 'string' && option.pattern.test(value) ? [] : [problem(field, option.problem)];
  });
  return [...unknown, ...invalid];
}
