import { EVENT_TYPE_TABLE, type EventType, type RunStatus } from '@runhook/contract/event-types';

/** Formats JSON without changing its numbers and strings. Returns null for a text that is not JSON. */
export function formatJson(text: string): string | null {
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

/** Formats a response body that is a JSON object or array. `binary`: over a tenth of its characters are unreadable. */
export function readableBody(body: string): { kind: 'json' | 'text'; text: string } | { kind: 'binary' } {
  // The log replaces invalid UTF-8 by U+FFFD (docs/contract.md#attempts).
  const unreadable = body.match(UNREADABLE)?.length ?? 0;
  if (unreadable > body.length * UNREADABLE_SHARE_MAX) return { kind: 'binary' };
  const json = /^\s*[{[]/.test(body) ? formatJson(body) : null;
  return json === null ? { kind: 'text', text: body } : { kind: 'json', text: json };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression searches for control characters
const UNREADABLE = /[\uFFFD\u0000-\u0008\u000E-\u001F]/g;
const UNREADABLE_SHARE_MAX = 0.1;

/** Matches strings as one token, so that their punctuation is not formatted. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|\s+/g;

interface CurlRequest {
  url: string;
  body: string;
  signatureHeader?: string | undefined;
}

/**
 * Returns the request as a command for a POSIX shell with curl and openssl. It sends the exact body, signed with
 * $HMAC_SECRET, and stops before sending if that is not set.
 */
export function curlCommand({ url, body, signatureHeader = 'Authorization' }: CurlRequest): string {
  return [
    `: "\${HMAC_SECRET:?Set it to the secret of this webhook}" &&`,
    `body=${quoteForShell(body)} &&`,
    `signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$HMAC_SECRET" -hex | sed 's/^.* //') &&`,
    // curl would expand brackets and braces, which may be part of a URL.
    `curl --include --globoff --request POST ${quoteForShell(url)} \\`,
    `  --header 'Content-Type: application/json' \\`,
    `  --header ${quoteForShell(`${signatureHeader}: `)}"$signature" \\`,
    `  --data-raw "$body"`,
  ].join('\n');
}

/** Quotes a text as one word of a shell. Single quotes disable all special characters, and are escaped outside of the quotes. */
export function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * Escapes characters that have a meaning in a route of Express 5. Percent escapes remain, because Express matches the path as
 * sent.
 */
export function routePattern(path: string): string {
  return path.replaceAll(/[\\:*?+()[\]{}!]/g, '\\$&');
}

/** Quotes a text without line breaks as a string of JavaScript. */
export function quoteForScript(text: string): string {
  return `'${text.replaceAll(/[\\']/g, '\\$&')}'`;
}

interface RunSample {
  /** URL without a trailing slash. */
  baseUrl: string;
  accountId: number;
  jobId: string | number;
  /** Chosen by the caller, so that later calls do not depend on the first response. */
  runId: number;
  eventTypes: readonly EventType[];
}

/** Status in the call that reports the end of a run; null while it is running. */
const FINISH_STATUSES: Record<RunStatus, string | null> = {
  Running: null,
  Success: 'success',
  Errored: 'errored',
  Canceled: 'cancelled',
};

/** Returns the shell commands that report a run up to the state in which one of the events is sent. */
export function createRunSample({ baseUrl, accountId, jobId, runId, eventTypes }: RunSample): string {
  const curlCall = (path: string, body: object | null) =>
    [
      `curl -X POST '${baseUrl}/api/v2/accounts/${accountId}/runs/${path}' \\`,
      `  -H "Authorization: Token $RUNHOOK_TOKEN"${body === null ? '' : ' \\'}`,
      ...(body === null
        ? []
        : [`  -H 'Content-Type: application/json' \\`, `  -d '${JSON.stringify(body)}'`]),
    ].join('\n');
  const rows = eventTypes.map((eventType) => EVENT_TYPE_TABLE[eventType]);
  const firesAtStart = rows.some(({ statuses }) => statuses.includes('Running'));
  const row = rows.find(({ afterArtifacts }) => afterArtifacts) ?? rows[0];
  const finish = row ? FINISH_STATUSES[row.statuses[0]] : null;
  const startCall = curlCall('', { job_id: jobId, run_id: runId, engine_version: '1.0.0' });
  const finishCall = curlCall(`${runId}/finish/`, { status: finish });
  const artifactsCall = curlCall(`${runId}/artifacts/`, null);
  if (firesAtStart || finish === null) return startCall;
  return [startCall, finishCall, ...(row?.afterArtifacts ? [artifactsCall] : [])].join('\n');
}
