/** Texts that PostgreSQL, jsonb, Go, Rust or Java rejects. */
export const INVALID_TEXTS = [
  'cut \ud83d',
  '\ude80 cut',
  '\ude80\ud83d',
  'a\0b',
  '\ufffe \uffff',
  '\ufdd0 \ufdef',
  '\u{1fffe} \u{10ffff}',
];
/** Texts that are similar and valid. */
export const VALID_TEXTS = [`a${'\u0301'.repeat(10_000)}`, '"\\\u2028\ufeff\u0001</script>'];
export const TEXTS = [...INVALID_TEXTS, ...VALID_TEXTS];

/** Numbers that parsers read differently or not at all. None of them is a valid id. */
export const ODD_NUMBERS = ['-0', '9007199254740993', '1e400'];

/** Nested more deeply than the body of a request may be. The queue does not check that. */
const DEPTH = 5_000;
const nested = (depth: number) => `,"more":${'['.repeat(depth)}${']'.repeat(depth)}`;
export const DEEP = nested(DEPTH);

/** An event's code as JSON, and JSON of further members. `isEvent` is whether the event is valid. */
export interface OddJson {
  code?: string;
  more?: string;
  isEvent: boolean;
}

export const ODD_JSON: readonly OddJson[] = [
  { code: '-0', isEvent: true },
  { code: '3.0', isEvent: true },
  { code: '9007199254740993', isEvent: false },
  { code: '1e400', isEvent: false },
  { code: '3,"jobName":"the second \\ud83d","jobName":"the third \\ude80"', isEvent: true },
  // The last of two members with the same name counts.
  { more: ',"data":{}', isEvent: false },
  { more: nested(15), isEvent: true },
];

/** Messages that only a queue can carry: the body of a request is limited in depth and must be JSON. */
export const ODD_MESSAGES: readonly OddJson[] = [
  ...ODD_JSON,
  { more: DEEP, isEvent: true },
  { code: '1.5', more: DEEP, isEvent: false },
  // Python's json module writes these two.
  { code: 'NaN', isEvent: false },
  { code: 'Infinity', isEvent: false },
];
