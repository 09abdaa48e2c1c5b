import { Buffer } from 'node:buffer';
import { MASK } from './delivery-headers.ts';

/**
 * Masks the secrets of a request in its response: an endpoint that echoes requests would show them to every reader of
 * the log. Masks exact occurrences and usual encodings; it cannot stop an endpoint that encodes a value on purpose.
 */
export class EchoMask {
  readonly #exact: readonly string[];
  readonly #encoded: readonly string[];
  readonly #charactersMin: number;
  readonly #isTooMany: boolean;
  #forms: readonly string[] | null = null;

  /**
   * @param exact secrets that are masked as they are
   * @param encoded secrets that are also masked in encoded forms
   */
  constructor({ exact, encoded }: { exact: readonly string[]; encoded: readonly string[] }) {
    this.#exact = exact.filter(isLongEnough);
    this.#encoded = encoded.filter(isLongEnough);
    this.#isTooMany = this.#encoded.length > ENCODED_MAX;
    this.#charactersMin = Math.min(...[...this.#exact, ...this.#encoded].map(({ length }) => length));
  }

  /** @param isCut whether the text may end within a secret, whose beginning is then masked as well */
  apply(text: string, isCut = false): string {
    // Most responses are shorter than any secret, and need no encoded forms.
    if (!isCut && text.length < this.#charactersMin) return text;
    if (this.#isTooMany) return text.replace(/[^\n]+/g, MASK);
    this.#forms ??= formsOf(this.#exact, this.#encoded);
    let masked = text;
    for (const form of this.#forms) masked = masked.replaceAll(form, MASK);
    return isCut ? maskCutEnd(masked, this.#forms) : masked;
  }
}

/**
 * Maximum number of secrets that are searched for in encoded forms; beyond it every line of a response is masked. Each has a
 * dozen forms, so thousands, such as the words of long values, would occupy the process of all accounts.
 */
const ENCODED_MAX = 32;
/** Shorter texts occur in responses by chance. */
const ECHO_CHARACTERS_MIN = 4;
/** Minimum for parts of base64, which have fewer bits in a character. */
const BASE64_CHARACTERS_MIN = 8;

function isLongEnough(text: string): boolean {
  return text.length >= ECHO_CHARACTERS_MIN;
}

/** Returns all texts to mask, the longest first: one may contain another. */
function formsOf(exact: readonly string[], encoded: readonly string[]): string[] {
  const forms = new Set([...exact, ...encoded.flatMap(encodedForms)].filter(isLongEnough));
  return [...forms].sort((one, other) => other.length - one.length);
}

const HTML_ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function encodedForms(secret: string): string[] {
  const url = encodeURIComponent(secret);
  const json = JSON.stringify(secret).slice(1, -1);
  return [
    secret,
    json,
    secret.replace(/[&<>"']/g, (character) => HTML_ENTITIES[character] ?? character),
    url,
    url.replaceAll('%20', '+'),
    ...base64Forms(secret),
    // Endpoints that log requests as JSON may respond with its base64.
    ...base64Forms(json),
  ];
}

/**
 * Returns the base64 of the text, and the characters that are the same if the text is a part of the encoded data: they
 * depend on its position modulo 3.
 */
function base64Forms(secret: string): string[] {
  const parts = [0, 1, 2].map((offset) => {
    const bytes = Buffer.from(`${' '.repeat(offset)}${secret}`);
    const firstCharacter = Math.ceil((offset * 8) / 6);
    return bytes.toString('base64').slice(firstCharacter, Math.floor((bytes.length * 8) / 6));
  });
  return [Buffer.from(secret).toString('base64'), ...parts]
    .filter(({ length }) => length >= BASE64_CHARACTERS_MIN)
    .flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')]);
}

/** Masks the end of a text that is the beginning of a form. */
function maskCutEnd(text: string, forms: readonly string[]): string {
  const starts = forms.map((form) => startOfCut(text, form)).filter((start) => start >= 0);
  return starts.length === 0 ? text : `${text.slice(0, Math.min(...starts))}${MASK}`;
}

/** Returns where the form begins that the end of the text cuts off, or -1. */
function startOfCut(text: string, form: string): number {
  const head = form.slice(0, ECHO_CHARACTERS_MIN);
  const earliest = Math.max(0, text.length - form.length + 1);
  for (let start = text.indexOf(head, earliest); start >= 0; start = text.indexOf(head, start + 1))
    if (form.startsWith(text.slice(start))) return start;
  return -1;
}
