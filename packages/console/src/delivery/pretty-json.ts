/** JSON laid out for reading, its numbers and texts as they stand in it; null for what is no JSON. */
export function prettyJson(text: string): string | null {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let depth = 0;
  const lineBreak = () => `\n${'  '.repeat(depth)}`;
  return text.replace(TOKEN, (token) => {
    if (/^[{[]\s*[}\]]$/.test(token)) return token.replace(/\s+/, '');
    switch (token.trim()) {
      case '{':
      case '[':
        depth++;
        return token.trim() + lineBreak();
      case '}':
      case ']':
        depth--;
        return lineBreak() + token.trim();
      case ',':
        return `,${lineBreak()}`;
      case ':':
        return ': ';
      case '':
        return '';
      default:
        return token;
    }
  });
}

/** Strings stay whole: punctuation inside them is theirs. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|\s+/g;
