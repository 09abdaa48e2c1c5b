import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient, RunhookError, type Schemas, VERSION } from '@runhook/client';
import { printable } from '@runhook/runtime/terminal-text';
import type { Option } from 'commander';
import { CliError, option, parsers, UsageError } from './command.ts';

export interface ConnectionOptions {
  url?: string;
  account?: number;
  token?: string;
  tokenFile?: string;
}

const URL_DEFAULT = 'http://127.0.0.1:3000';

/** Options of every command that calls the service. Returns new objects, because commander modifies them. */
export function connectionOptions(): Option[] {
  return [
    option('--url <url>', `URL of the service; default: RUNHOOK_URL, then ${URL_DEFAULT}`, parsers.httpUrl),
    option(
      '--account <id>',
      'id of the account; default: RUNHOOK_ACCOUNT, then the only account of the token',
      parsers.id,
    ),
    option('--token <token>', 'an API key or a service token; visible in the process list'),
    option(
      '--token-file <file>',
      'a file of mode 600 with the token; default: RUNHOOK_TOKEN, RUNHOOK_TOKEN_FILE, then ~/.config/runhook/token',
    ),
  ];
}

/** Returns the URL of the service from the options or the environment. */
export function serviceUrl(env: NodeJS.ProcessEnv, { url }: ConnectionOptions): string {
  if (url !== undefined) return url;
  if (!env.RUNHOOK_URL) return URL_DEFAULT;
  if (!URL.canParse(env.RUNHOOK_URL)) throw new UsageError('RUNHOOK_URL must be an http or https URL.');
  return env.RUNHOOK_URL;
}

/** Returns the token as {@link findToken} does; throws if there is none. */
export function requireToken(env: NodeJS.ProcessEnv, options: ConnectionOptions): string {
  const token = findToken(env, options);
  if (token !== null) return token;
  throw new UsageError(
    'No token: set RUNHOOK_TOKEN, write one to ~/.config/runhook/token (mode 600), or use --token-file.',
  );
}

/** Returns the token from the first source that has one, or null. Throws for a file that other users can read. */
export function findToken(env: NodeJS.ProcessEnv, { token, tokenFile }: ConnectionOptions): string | null {
  if (token !== undefined) return requireWellFormed(token, '--token');
  if (tokenFile !== undefined) return readTokenFile(tokenFile);
  if (env.RUNHOOK_TOKEN) return requireWellFormed(env.RUNHOOK_TOKEN, 'RUNHOOK_TOKEN');
  if (env.RUNHOOK_TOKEN_FILE) return readTokenFile(env.RUNHOOK_TOKEN_FILE);
  const file = join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'runhook', 'token');
  return statSync(file, { throwIfNoEntry: false }) === undefined ? null : readTokenFile(file);
}

function readTokenFile(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isFile())
    throw new CliError('token_file', `The token file ${file} does not exist or is not a file.`);
  // Windows has no such modes.
  if (process.platform !== 'win32' && (stat.mode & 0o077) !== 0)
    throw new CliError(
      'token_file',
      `Other users can read ${file}, so it is not used: set its mode with chmod 600, and replace the token.`,
    );
  return requireWellFormed(readFileSync(file, 'utf8').trim(), file);
}

/**
 * Checks that the token is a valid header value: otherwise `fetch` would fail with an error that contains the token.
 */
function requireWellFormed(token: string, source: string): string {
  if (/^[!-~]+$/.test(token)) return token;
  throw new UsageError(
    `${source} does not contain a valid token: a token is one word of printable ASCII characters.`,
  );
}

/**
 * Connects to the service that the options and the environment name. Requests the account from the service if neither
 * names one.
 */
export async function connect(env: NodeJS.ProcessEnv, options: ConnectionOptions): Promise<Client> {
  const token = requireToken(env, options);
  const clientFor = (accountId?: number) =>
    createClient({ url: serviceUrl(env, options), token, accountId, userAgent: `runhook-cli/${VERSION}` });
  const configuredId =
    options.account ?? (env.RUNHOOK_ACCOUNT ? parseAccountId(env.RUNHOOK_ACCOUNT) : undefined);
  return clientFor(configuredId ?? (await findOnlyAccount(clientFor())));
}

function parseAccountId(text: string): number {
  const id = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (id === 0) throw new UsageError('RUNHOOK_ACCOUNT must be the numeric id of an account.');
  return id;
}

async function findOnlyAccount(client: Client): Promise<number> {
  const accounts = await client.get('/api/v3/accounts', { query: { limit: 10 } });
  const [first, ...others] = accounts;
  if (first === undefined) throw new CliError('no_account', 'The token has access to no account.');
  if (others.length === 0) return first.id;
  const accountList = accounts.map(({ id, name }) => `${id} (${printable(name)})`).join(', ');
  throw new UsageError(
    `The token has access to several accounts; select one with --account or RUNHOOK_ACCOUNT: ${accountList}.`,
  );
}

const SUBSCRIPTIONS_PATH = '/api/v3/accounts/{account_id}/webhooks/subscriptions';
const SUBSCRIPTION_PATH = '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}';
const SIMILAR_MAX = 5;

/** Returns a webhook by its id, or by its name if the name is unique. */
export async function resolveWebhook(client: Client, reference: string): Promise<Schemas['Subscription']> {
  if (/^wsu_[0-9A-Za-z]{27}$/.test(reference)) {
    try {
      return await client.get(SUBSCRIPTION_PATH, { path: { webhook_id: reference } });
    } catch (error) {
      if (error instanceof RunhookError && error.status === 404)
        throw new CliError('not_found', `There is no webhook ${reference}.`);
      throw error;
    }
  }
  const similar: Schemas['Subscription'][] = [];
  for await (const one of client.list(SUBSCRIPTIONS_PATH, { query: { search: reference, limit: 100 } }))
    similar.push(one);
  const exactMatches = similar.filter(({ name }) => name === reference);
  const [match, second] = exactMatches;
  if (match !== undefined && second === undefined) return match;
  const candidates = (match === undefined ? similar : exactMatches).slice(0, SIMILAR_MAX);
  const list = candidates.map(({ id, name }) => `${id} (${printable(name)})`).join(', ');
  if (match !== undefined)
    throw new CliError(
      'ambiguous',
      `Several webhooks are named ${printable(reference)}; use the id of one of them: ${list}.`,
    );
  const hint = candidates.length === 0 ? '' : ` Similar: ${list}.`;
  throw new CliError('not_found', `There is no webhook named ${printable(reference)}.${hint}`);
}
