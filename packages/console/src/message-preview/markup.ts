/** A piece of a message's text with its style. */
export interface Span {
  text: string;
  style: 'plain' | 'bold' | 'italic' | 'code' | 'link';
}

const ENTITIES: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>' };

/** Links, bold, italic and code of Slack's mrkdwn; bold and italic only at the boundaries of words. */
const MRKDWN =
  /<([^|>\s]+)(?:\|([^>]*))?>|(?<![\w*])\*(?=\S)([^*\n]+)\*(?![\w*])|(?<![\w_])_(?=\S)([^_\n]+)_(?![\w_])|`([^`\n]+)`/g;

/** Splits a text as Slack does (https://docs.slack.dev/messaging/formatting-message-text). */
export function parseMrkdwn(text: string): Span[] {
  const decode = (part: string) => part.replace(/&(?:amp|lt|gt);/g, (entity) => ENTITIES[entity] ?? entity);
  return splitByPattern(text, MRKDWN, decode, ([, address, label, bold, italic, code]) =>
    address === undefined
      ? firstSpan({ bold, italic, code })
      : { text: label === undefined || label === '' ? address : label, style: 'link' },
  );
}

/** An escaped character, or bold, a link, code or italic, inside which characters may be escaped. */
const MARKDOWN =
  /\\([!-/:-@[-`{-~])|\*\*((?:\\.|[^*\\])+)\*\*|\[((?:\\.|[^\]\\])*)\]\([^)\s]*\)|`([^`]+)`|(?<!\w)([*_])(?=\S)((?:\\.|(?!\5)[^\\])+)\5(?!\w)/gs;

/** Splits a text as Discord and Adaptive Cards do, as far as formats use Markdown. */
export function parseMarkdown(text: string): Span[] {
  const removeEscapes = (part: string) => part.replace(/\\([!-/:-@[-`{-~])/g, '$1');
  return splitByPattern(text, MARKDOWN, removeEscapes, ([, escaped, bold, link, code, , italic]) =>
    escaped === undefined ? firstSpan({ bold, link, code, italic }) : { text: escaped, style: 'plain' },
  );
}

/** @param decode applied to the text of each span, after the text was split */
function splitByPattern(
  text: string,
  pattern: RegExp,
  decode: (part: string) => string,
  toSpan: (match: RegExpMatchArray) => Span,
): Span[] {
  const spans: Span[] = [];
  const add = (span: Span) => {
    const last = spans.at(-1);
    if (span.text === '') return;
    if (last?.style === 'plain' && span.style === 'plain') last.text += span.text;
    else spans.push({ ...span });
  };
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    add({ text: decode(text.slice(end, match.index)), style: 'plain' });
    const span = toSpan(match);
    add({ ...span, text: span.style === 'plain' ? span.text : decode(span.text) });
    end = match.index + match[0].length;
  }
  add({ text: decode(text.slice(end)), style: 'plain' });
  return spans;
}

function firstSpan(candidates: Partial<Record<Span['style'], string | undefined>>): Span {
  const [style, text] = Object.entries(candidates).find(([, one]) => one !== undefined) ?? ['plain', ''];
  return { text: text ?? '', style: style as Span['style'] };
}
