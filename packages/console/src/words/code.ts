import { EVENT_TYPE_TABLE, type EventType, type RunStatus } from '@runhook/contract/event-types';

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

/** An answer as somebody can read it. `binary` is what the log kept of bytes that are no text: nothing to look at. */
export function readableBody(body: string): { kind: 'json' | 'text'; text: string } | { kind: 'binary' } {
  // What is no UTF-8 is U+FFFD in the log (docs/contract.md#attempts).
  const unreadable = body.match(UNREADABLE)?.length ?? 0;
  if (unreadable > body.length * UNREADABLE_SHARE_MAX) return { kind: 'binary' };
  const json = /^\s*[{[]/.test(body) ? prettyJson(body) : null;
  return json === null ? { kind: 'text', text: body } : { kind: 'json', text: json };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const UNREADABLE = /[\uFFFD\u0000-\u0008\u000E-\u001F]/g;
const UNREADABLE_SHARE_MAX = 0.1;

/** Strings stay whole: punctuation inside them is theirs. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|\s+/g;

interface CurlRequest {
  url: string;
  body: string;
  signatureHeader?: string | undefined;
}

/**
 * The request as a command for a POSIX shell with curl and openssl: the exact body, signed with the secret that
 * $HMAC_SECRET has when it runs. Without the secret it stops before anything is sent.
 */
export function curlCommand({ url, body, signatureHeader = 'Authorization' }: CurlRequest): string {
  return [
    `: "\${HMAC_SECRET:?Set it to the secret of this webhook}" &&`,
    `body=${shellQuoted(body)} &&`,
    `signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$HMAC_SECRET" -hex | sed 's/^.* //') &&`,
    // Brackets and braces are part of an address, and curl would expand them.
    `curl --include --globoff --request POST ${shellQuoted(url)} \\`,
    `  --header 'Content-Type: application/json' \\`,
    `  --header ${shellQuoted(`${signatureHeader}: `)}"$signature" \\`,
    `  --data-raw "$body"`,
  ].join('\n');
}

/** One word of a shell, whatever is in it: nothing is special between single quotes, and they are put outside. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Characters that mean something in a route of Express 5 mean themselves behind a backslash. Escapes stay: it matches the path as sent. */
export function routePattern(path: string): string {
  return path.replaceAll(/[\\:*?+()[\]{}!]/g, '\\$&');
}

/** A text of JavaScript, on one line. */
export function singleQuoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, '\\$&')}'`;
}

interface RunSample {
  /** Without a slash at its end. */
  baseUrl: string;
  accountId: number;
  jobId: string | number;
  /** Of the caller's own, so that the later calls need nothing from the first one's answer. */
  runId: number;
  eventTypes: readonly EventType[];
}

/** How a run is reported to have ended so; null when it has not. */
const FINISHES: Record<RunStatus, string | null> = {
  Running: null,
  Success: 'success',
  Errored: 'errored',
  Canceled: 'cancelled',
};

/** Shell commands that report a run as far as it takes for one of the events to be sent. */
export function runSample({ baseUrl, accountId, jobId, runId, eventTypes }: RunSample): string {
  const call = (path: string, body: object | null) =>
    [
      `curl -X POST '${baseUrl}/api/v2/accounts/${accountId}/runs/${path}' \\`,
      `  -H "Authorization: Token $RUNHOOK_TOKEN"${body === null ? '' : ' \\'}`,
      ...(body === null
        ? []
        : [`  -H 'Content-Type: application/json' \\`, `  -d '${JSON.stringify(body)}'`]),
    ].join('\n');
  const rows = eventTypes.map((eventType) => EVENT_TYPE_TABLE[eventType]);
  const atStart = rows.some(({ statuses }) => statuses.includes('Running'));
  const row = rows.find(({ afterArtifacts }) => afterArtifacts) ?? rows[0];
  const finish = row ? FINISHES[row.statuses[0]] : null;
  const started = call('', { job_id: jobId, run_id: runId, engine_version: '1.0.0' });
  const finished = call(`${runId}/finish/`, { status: finish });
  const ingested = call(`${runId}/artifacts/`, null);
  if (atStart || finish === null) return started;
  return [started, finished, ...(row?.afterArtifacts ? [ingested] : [])].join('\n');
}
