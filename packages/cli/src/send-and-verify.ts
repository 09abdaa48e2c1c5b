import { readFileSync } from 'node:fs';
import {
  createHmacSecret,
  createId,
  EVENT_TYPES,
  type EventType,
  renderPayload,
  SIGNATURE_HEADER,
  sampleEvent,
} from '@runhook/contract';
import { checkSignature, formatVerdict } from '@runhook/contract/check-signature';
import {
  CliError,
  type Command,
  type Context,
  choice,
  option,
  parsers,
  repeatable,
  UsageError,
} from './command.ts';
import { secretOption, timeoutOption } from './listen.ts';
import { isSuccess, type PostResult, post, postResultJson, postResultText } from './post.ts';

interface SendOptions {
  to: string;
  type?: EventType;
  file?: string;
  secret?: string;
  signatureHeader?: string;
  timeout: number;
}

/** Sends a delivery without a service, to try out a receiver. */
export const sendCommand: Command<SendOptions> = {
  name: 'send',
  summary: 'send a signed sample of each event, or a file, to a URL',
  description:
    'Sends signed requests as Runhook does: a sample of every event type, of one type with --type, or the exact bytes of a file. Requires no service and no token. Exits with 1 unless every response was a 2xx.',
  options: [
    option('--to <url>', 'URL of the endpoint', parsers.httpUrl).makeOptionMandatory(),
    choice('--type <type>', 'only a sample of this event type', EVENT_TYPES),
    option('--file <file>', 'file with the body, or - for standard input'),
    secretOption(),
    option('--signature-header <name>', `name of the signature header (default: ${SIGNATURE_HEADER})`),
    timeoutOption(),
  ],
  examples: [
    'send --to http://localhost:8080/hook',
    'send --to http://localhost:8080/hook --file body.json --secret whsec_…',
  ],
  async run(context, options) {
    if (options.file !== undefined && options.type !== undefined)
      throw new UsageError('--type and --file cannot be combined.');
    const secret = options.secret ?? createHmacSecret();
    if (options.secret === undefined) await context.writeNote(`signed with  ${secret}`);
    const bodies =
      options.file === undefined ? samples(options.type) : [await readSampleFile(context, options.file)];
    let areAllDelivered = true;
    for (const { name, body, eventId } of bodies) {
      const message = { body, eventId, secret, signatureHeader: options.signatureHeader ?? null };
      const result: PostResult = await post(options.to, message, 1_000 * options.timeout);
      areAllDelivered = isSuccess(result) && areAllDelivered;
      const row = { sample: name, event_id: eventId, secret, ...postResultJson(result) };
      await context.writeRow(`${name.padEnd(NAME_WIDTH)}  ${postResultText(result)}`, row);
    }
    return areAllDelivered ? 0 : 1;
  },
};

const NAME_WIDTH = 'job.run.completed'.length;

interface SampleBody {
  name: string;
  body: string | Buffer;
  eventId: string;
}

function samples(eventType: EventType | undefined): SampleBody[] {
  const now = new Date();
  const webhook = { id: createId('subscription', now.getTime()), name: 'A sample' };
  return (eventType === undefined ? EVENT_TYPES : [eventType]).map((type) => {
    const eventId = createId('event', now.getTime());
    return {
      name: type,
      body: renderPayload(sampleEvent(type, { accountId: 1, eventId, now }), webhook),
      eventId,
    };
  });
}

async function readSampleFile(context: Context, file: string): Promise<SampleBody> {
  const body = await readBytes(context, file);
  let eventId: unknown;
  try {
    eventId = JSON.parse(body.toString()).eventId;
  } catch {
    // A body that is not JSON gets a new id.
  }
  return { name: file, body, eventId: typeof eventId === 'string' ? eventId : createId('event', Date.now()) };
}

async function readBytes({ stdin }: Context, file: string): Promise<Buffer> {
  if (file !== '-') return readFileSync(file);
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

interface VerifyOptions {
  header: string[];
  secret?: string;
  signatureHeader: string;
}

export const verifyCommand: Command<VerifyOptions> = {
  name: 'verify',
  summary: 'check a signature and find the byte that differs',
  description:
    'Checks the signature of a body, both as your endpoint received them. If it is wrong, tries the changes that copying, parsing and proxies cause, and reports the change and the first byte that differs. Sends nothing. Exits with 1 if the signature is wrong.',
  arguments: [['[body]', 'file with the exact bytes; default (or -): standard input']],
  options: [
    repeatable(
      '--header <header>',
      'value of the signature header, or header lines “name: value”; may be repeated',
      String,
    ),
    option(
      '--secret <secret>',
      'secret that your endpoint verifies with; default: RUNHOOK_SECRET, which the process list does not show',
    ),
    option('--signature-header <name>', 'name of the signature header').default(SIGNATURE_HEADER),
  ],
  examples: [
    'verify body.json --header 163c36065a0f… --secret whsec_…',
    'verify < body.json --header "webhook-signature: v1,…" --header "webhook-timestamp: 1795168800" --header "webhook-id: wev_…"',
  ],
  async run(context, { header = [], secret = context.env.RUNHOOK_SECRET, signatureHeader }, [file = '-']) {
    if (header.length === 0)
      throw new UsageError('Missing option --header: the signature header that your endpoint received.');
    if (!secret) throw new UsageError('Missing secret: use --secret or RUNHOOK_SECRET.');
    const body = decodeBody(await readBytes(context, file));
    const verdict = await checkSignature({ body, header: header.join('\n'), secret, signatureHeader });
    const { title, lines } = formatVerdict(verdict, null);
    if (verdict.kind === 'unreadable') throw new UsageError(lines.join(' '));
    await context.writeResult([`${title}.`, ...lines.map((line) => `  ${line}`)].join('\n'), {
      ...verdict,
      title,
      lines,
    });
    return verdict.kind === 'genuine' ? 0 : 1;
  },
};

/** Decodes the body and retains a byte order mark, because the signature would cover it. */
function decodeBody(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new CliError(
      'not_utf8',
      `The body was changed: it is not valid UTF-8 from byte ${firstInvalidByte(bytes)} on.`,
    );
  }
}

function firstInvalidByte(bytes: Buffer): number {
  const reencoded = Buffer.from(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
  return reencoded.findIndex((byte, index) => byte !== bytes[index]);
}
